// A workload that reports which build of it has run, and which build of a library beside it; in two builds of each.
#include <assay/plugin.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

extern "C" int pace_of_helper();

namespace {

class Paced {
 public:
  static constexpr auto id = "paced", summary = "reports its build";
  static constexpr auto params =
      assay::table(assay::Param::integer("i", 0).help("nothing"),
                   assay::Param::integer("nap_ms", 0).at_least(0).unit("ms").help("how long a step sleeps"),
                   assay::Param::text("gates", "").help("a folder: a step of i > 0 waits until it has a file named i"),
                   assay::Param::input_path("input").help("a file; it is not read"));
  static constexpr auto phases = assay::names("nap");
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("build", "", ASSAY_NEITHER_IS_BETTER, "of the plugin"),
      assay::Metric::per_case("helper", "", ASSAY_NEITHER_IS_BETTER, "the build of the library beside it"));

  explicit Paced(const assay::Case& c) : nap_(c.get<std::int64_t>("nap_ms")) {
    const auto i = c.get<std::int64_t>("i");
    const auto gates = c.get<std::string>("gates");
    if (!gates.empty() && i > 0) gate_ = std::filesystem::path(gates) / std::to_string(i);
  }
  void setup(const assay::Launch&) {}
  void run(const assay::Launch& launch) {
    const auto phase = launch.phase(0);
    launch.metric(0, BUILD);
    launch.metric(1, pace_of_helper());
    std::this_thread::sleep_for(nap_);
    while (!gate_.empty() && !std::filesystem::exists(gate_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::chrono::milliseconds nap_;
  std::filesystem::path gate_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.paced", "1.0.0", Paced)
