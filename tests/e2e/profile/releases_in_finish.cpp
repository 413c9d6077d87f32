// A plugin as it was compiled when no step came after `finish`, which releases there what a step needs: its entry names
// ABI 1.2.
#include <assay/plugin.hpp>

#include <stdexcept>

namespace {

struct ReleasesInFinish {
  static constexpr auto id = "releases_in_finish", summary = "nothing, of an older plugin", item_unit = "items";
  static constexpr auto metrics =
      assay::table(assay::Metric::per_case("blocks_left", "blocks", ASSAY_NEITHER_IS_BETTER, "0 after finish"));

  explicit ReleasesInFinish(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {
    if (blocks_ == 0) throw std::runtime_error("a step after finish");
  }
  void finish(const assay::Launch& launch) {
    blocks_ = 0;
    launch.metric(0, blocks_);
  }
  assay::Work work() const { return {.flops = 0, .bytes = 0, .items = 10}; }

 private:
  double blocks_ = 1;
};

}  // namespace

extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v1 = {
    sizeof(assay_entry),
    1,
    2,
    0,
    1,
    "org.assay.test.releases_in_finish",
    "1.0.0",
    ASSAY_BUILD_INFO,
    assay::detail::workload_pointers<ReleasesInFinish>.data(),
    nullptr,
    nullptr};
