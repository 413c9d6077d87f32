// A workload that captures its step, as far as the host sees it: phases are marked in setup, and a step says that it
// replays them. It keeps an account.
#include <assay/plugin.hpp>

#include <chrono>
#include <cstdint>

namespace {

void be_busy(std::chrono::microseconds for_us) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < for_us) {
  }
}

class CapturedWork {
 public:
  static constexpr auto id = "captured_work", summary = "replays", item_unit = "steps";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto phases = assay::names("forward", "backward");
  static constexpr auto metrics = assay::table(assay::Metric::per_step("step"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit CapturedWork(const assay::Case& c) : host_(c.host()) {}

  void setup(const assay::Launch& launch) {
    const assay::CaptureMarks captured(host_);
    for (std::uint32_t phase = 0; phase < 2; ++phase) {
      const auto marked = launch.phase(phase);
      be_busy(std::chrono::microseconds(100));
    }
  }

  void run(const assay::Launch& launch) {
    be_busy(std::chrono::microseconds(200));
    assay::mark_replayed(host_);
    launch.metric(0, static_cast<double>(++steps_));
  }

  assay::Account account(const assay::Launch&) const { return {.steps = steps_}; }
  assay::Verified verify(const assay::Launch&) const { return {"it counts", false}; }
  assay::Work work() const { return {.flops = 0, .bytes = 0, .items = 1}; }

 private:
  assay::Host host_;
  std::uint64_t steps_ = 0;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.captured_work", "1.0.0", CapturedWork)
