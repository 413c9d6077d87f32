// A workload whose steps are epochs, in which it sleeps: long enough to be sampled, on any number of ranks.
#include <assay/plugin.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace {

constexpr auto unit_names = assay::names("epoch");

class NappingWork {
 public:
  static constexpr auto id = "napping_work", summary = "sleeps", item_unit = "samples";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = assay::table(
      assay::Param::integer("heads", 1).at_least(1).help("of nothing; a name that other tools spell otherwise"),
      assay::Param::integer("nap_ms", 0).at_least(0).unit("ms").help("how long a step sleeps"),
      assay::Param::boolean("grows", false).help("each step reports one MiB more, and keeps it"),
      assay::Param::integer("warnings", 0).at_least(0).help("how many different warnings each step has"));
  static constexpr auto phases = assay::names("nap");
  static constexpr auto metrics =
      assay::table(assay::Metric::word("measured_unit", unit_names, "what a measured step is"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit NappingWork(const assay::Case& c)
      : host_(c.host()),
        nap_(c.get<std::int64_t>("nap_ms")),
        warnings_(c.get<int>("warnings")),
        memory_(c.get<bool>("grows") ? c.host().extension<assay_memory>(ASSAY_EXT_MEMORY) : nullptr) {}

  void setup(const assay::Launch& launch) { launch.metric(0, 0); }

  void run(const assay::Launch& launch) {
    const auto phase = launch.phase(0);
    for (int i = 1; i <= warnings_; ++i) host_.warn("warning " + std::to_string(i));
    if (memory_) memory_->report(memory_, ASSAY_MEMORY_ACTIVATIONS, 1 << 20, {});
    std::this_thread::sleep_for(nap_);
  }

  assay::Work work() const { return {.flops = 0, .bytes = 0, .items = 10}; }

 private:
  assay::Host host_;
  std::chrono::milliseconds nap_;
  int warnings_;
  const assay_memory* memory_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.napping_work", "1.0.0", NappingWork)
