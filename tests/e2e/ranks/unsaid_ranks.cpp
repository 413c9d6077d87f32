// A plugin as it was compiled before a workload could say what its ranks are to each other: its entry names ABI 1.2,
// and a build without optimisation.
#include <assay/plugin.hpp>

namespace {

struct UnsaidRanks {
  static constexpr auto id = "unsaid_ranks", summary = "nothing, of an older plugin", item_unit = "items";
  explicit UnsaidRanks(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
  assay::Work work() const { return {.flops = 0, .bytes = 0, .items = 10}; }
};

}  // namespace

extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v1 = {
    sizeof(assay_entry),
    1,
    2,
    0,
    1,
    "org.assay.test.unsaid_ranks",
    "1.0.0",
    "GNU 9.4.0 unoptimised",
    assay::detail::workload_pointers<UnsaidRanks>.data(),
    nullptr,
    nullptr};
