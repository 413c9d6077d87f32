// Columns that set a case against its baseline.
#include "results/baselines.hpp"

#include "results/table.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

Json timed(const std::string& size, const std::string& execution, double step_ms) {
  Json record = ok_record();
  record["axes"] = {{"size", size}, {"execution", execution}};
  record["phases"]["step"]["mean_ms"] = step_ms;
  return record;
}

const record::Named<Value> kEager{{"execution", std::string("eager")}};

TEST(Baselines, ARatioIsTheCasesFigureOverTheBaselines) {
  Json graph = timed("small", "graph", 8);
  graph["memory"]["peak_total_mib"] = 790.75 / 2;
  const std::vector<record::CaseRecord> records{graph, timed("small", "eager", 10), timed("large", "eager", 40),
                                                timed("large", "graph", 20)};
  EXPECT_EQ(to_csv(make_table({"size", "execution", "step.mean_ms.ratio", "speedup", "memory.peak_mib.ratio"}, records,
                              kEager)),
            "size,execution,step.mean_ms.ratio,speedup,memory.peak_mib.ratio\n"
            "small,graph,0.8,1.25,0.5\n"
            "small,eager,1.0,1.0,1.0\n"
            "large,eager,1.0,1.0,1.0\n"
            "large,graph,0.5,2.0,1.0\n");
}

TEST(Baselines, ThereIsNoRatioToWhatIsNotThereOrNotOk) {
  Json failed = timed("large", "eager", 40), oom = timed("medium", "graph", 10);
  failed["status"] = "wrong_result";
  oom["status"] = "oom";
  const std::vector<record::CaseRecord> records{timed("small", "graph", 8), failed, timed("large", "graph", 20),
                                                timed("medium", "eager", 10), oom};
  EXPECT_EQ(to_csv(make_table({"size", "speedup", "memory.peak_mib.ratio", "status"}, records, kEager)),
            "size,speedup,memory.peak_mib.ratio,status\n"
            "small,,,ok\n"
            "large,,,wrong_result\n"
            "large,,,ok\n"
            "medium,1.0,1.0,ok\n"
            "medium,,,oom\n");
}

// Its axes may be those of a case that is there, with other parameters.
TEST(Baselines, AFormerCaseNeitherHasNorIsABaseline) {
  std::vector<record::CaseRecord> records{timed("small", "eager", 1000), timed("small", "eager", 10),
                                          timed("small", "graph", 8), timed("small", "graph", 800)};
  records[0].is_former = records[3].is_former = true;
  EXPECT_EQ(to_csv(make_table({"speedup"}, records, kEager)), "speedup\n\"\"\n1.0\n1.25\n\"\"\n");
}

TEST(Baselines, SeveralAxesMayBeNamed) {
  const std::vector<record::CaseRecord> records{timed("small", "eager", 10), timed("large", "graph", 40)};
  const record::Named<Value> one{{"size", std::string("small")}, {"execution", std::string("eager")}};
  EXPECT_EQ(to_csv(make_table({"speedup"}, records, one)), "speedup\n1.0\n0.25\n");
}

TEST(Baselines, AFigureOfZeroHasNoRatio) {
  Json zero = timed("small", "eager", 0), graph = timed("small", "graph", 8);
  EXPECT_EQ(to_csv(make_table({"step.mean_ms.ratio", "speedup"}, {zero, graph}, kEager)),
            "step.mean_ms.ratio,speedup\n,\n,0.0\n");
}

TEST(Baselines, AWorkloadsOwnMetricOfThatNameStands) {
  Json record = timed("small", "graph", 8);
  record["metrics"]["speedup"] = {{"value", 7.5}, {"unit", ""}, {"direction", 1}};
  EXPECT_EQ(to_csv(make_table({"speedup"}, {record, timed("small", "eager", 10)}, kEager)), "speedup\n7.5\n1.0\n");
}

TEST(Baselines, WithoutOneTheColumnsAreEmpty) {
  EXPECT_EQ(to_csv(make_table({"size", "speedup"}, {timed("small", "graph", 8)})), "size,speedup\nsmall,\n");
}

TEST(Baselines, ARepeatIsSetAgainstTheBaselineOfItsTurn) {
  std::vector<record::CaseRecord> records{timed("small", "eager", 10), timed("small", "graph", 8),
                                          timed("small", "eager", 20), timed("small", "graph", 10)};
  records[2].identity.repeat = records[3].identity.repeat = 2;
  EXPECT_EQ(to_csv(make_table({"speedup"}, records, kEager)), "speedup\n1.0\n1.25\n1.0\n2.0\n");
}

}  // namespace
}  // namespace assay::host::results
