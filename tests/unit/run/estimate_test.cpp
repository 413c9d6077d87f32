#include "run/estimate.hpp"

#include "planned_runs.hpp"
#include "record/json.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::run::test {
namespace {

namespace fs = std::filesystem;

class EstimateOfCases : public ::testing::Test {
 protected:
  EstimateOfCases() {
    experiment_ = experiment_of({case_of(0, 4), case_of(1, 8)});
    experiment_.output.dir = folder_.path();
    plan_ = make_plan(experiment_, machine_.basis);
  }
  static experiment::Case case_of(std::int64_t index, std::int64_t batch_size) {
    experiment::Case c = small_case(index, batch_size);
    c.axes = {{"batch_size", batch_size}};
    return c;
  }
  // The record of a case as a run would have it, with what the test changes about it.
  record::CaseRecord record_of(std::size_t place, double case_s) const {
    const CasePlan& planned = plan_.cases[place];
    record::CaseRecord record;
    record.identity.index = planned.values.index, record.identity.axes = planned.values.axes;
    record.identity.hash = "of other code", record.identity.ranks = 1, record.identity.workload = "demo";
    for (const auto& [name, value] : planned.values.params) record.identity.params.emplace_back(name, value);
    for (const auto& [name, value] : planned.values.settings()) record.identity.settings.emplace_back(name, value);
    record.result.device = planned.device.device;
    record.result.wall.case_s = case_s;
    return record;
  }
  fs::path put(const std::string& stamp, const std::vector<record::CaseRecord>& records) const {
    const fs::path run = folder_.path() / "demo" / stamp;
    std::string lines;
    for (const record::CaseRecord& record : records) lines += record::to_line(record) + "\n";
    assay::test::put_file(run / "cases.jsonl", lines);
    return run;
  }
  Estimate estimate() const {
    std::vector<const CasePlan*> cases;
    for (const CasePlan& planned : plan_.cases) cases.push_back(&planned);
    return estimate_by_earlier_runs(experiment_, machine_.schema, cases);
  }
  assay::test::TemporaryFolder folder_;
  Machine machine_;
  experiment::Experiment experiment_;
  RunPlan plan_;
};

TEST_F(EstimateOfCases, IsWhatTheNewestRunTookThatHasTheCase) {
  EXPECT_EQ(estimate().known(), 0u);
  const fs::path old = put("20261101T120000Z-0001", {record_of(0, 7), record_of(1, 30)});
  const fs::path recent = put("20261102T120000Z-0001", {record_of(0, 5), record_of(0, 6)});
  put("20261103T120000Z-0001", {});
  const Estimate found = estimate();
  EXPECT_EQ(found.seconds, (std::vector<std::optional<double>>{6, 30}));
  EXPECT_EQ(found.total_s(), 36);
  EXPECT_EQ(found.runs, (std::vector<fs::path>{recent, old}));
}

TEST_F(EstimateOfCases, AnotherCaseAnotherDeviceAndACrashSayNothing) {
  plan_.cases[0].values.measure.warmup += 1;  // not the default, which a record that does not name it has had
  std::vector<record::CaseRecord> others(13, record_of(0, 5));
  others[0].identity.axes[0].second = std::int64_t{5};
  for (auto& [name, value] : others[1].identity.params)
    if (name == "weights") value = std::string("w.bin");
  for (auto& [name, value] : others[2].identity.settings)
    if (name == "measure.warmup") value = std::int64_t{99};
  others[3].result.device->name = "another one";
  others[4].result.status = record::Status::crashed;
  others[5].identity.ranks = 2;
  others[6].identity.workload = "another one";
  others[7].result.device.reset();
  std::erase_if(others[8].identity.settings, [](const auto& entry) { return entry.first == "measure.warmup"; });
  others[9].identity.settings.emplace_back("measure.until.relative_error", 0.01);  // a rule that the case has not
  others[10].result.status = record::Status::oom;
  others[11].result.wall.case_s = -1;
  others[12].result.wall.case_s = 1e300;
  put("20261101T120000Z-0001", others);
  EXPECT_EQ(estimate().known(), 0u);
  // Another limit and a parameter that the record is too old to name are no difference.
  record::CaseRecord same = record_of(0, 5);
  for (auto& [name, value] : same.identity.settings)
    if (name == "measure.timeout") value = std::string("1h");
  std::erase_if(same.identity.params, [](const auto& entry) { return entry.first == "trace"; });
  put("20261102T120000Z-0001", {same});
  EXPECT_EQ(estimate().seconds, (std::vector<std::optional<double>>{5, std::nullopt}));
}

TEST_F(EstimateOfCases, WhatIsRefusedTakesNoTime) {
  plan_.cases[1].refusal = Refusal{record::Status::unsupported, "why"};
  EXPECT_EQ(estimate().seconds, (std::vector<std::optional<double>>{std::nullopt, 0}));
}

}  // namespace
}  // namespace assay::host::run::test
