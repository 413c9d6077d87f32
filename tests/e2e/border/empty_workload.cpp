// The least that a workload can be: its steps cost what the border and the host cost.
#include <assay/plugin.hpp>

struct Empty {
  static constexpr auto id = "empty", summary = "nothing, many times";
  static constexpr auto params = assay::table(assay::Param::integer("i", 0).help("nothing; to make cases of"));
  explicit Empty(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};

ASSAY_PLUGIN("org.assay.test.empty", "1.0.0", Empty)
