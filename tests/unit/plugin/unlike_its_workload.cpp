// A plugin whose file has another name than its workload.
#include <assay/plugin.hpp>

struct Idle {
  static constexpr auto id = "idle_workload", summary = "does nothing";
  explicit Idle(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};

ASSAY_PLUGIN("org.assay.test.unlike_its_workload", "1.0.0", Idle)
