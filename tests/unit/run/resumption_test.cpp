#include "run/resumption.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "planned_runs.hpp"
#include "record/json.hpp"
#include "run/thread_plan.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::run::test {
namespace {

record::CaseRecord finished_record(const std::string& hash, const std::string& plugin) {
  record::CaseRecord record;
  record.identity.index = 0, record.identity.hash = hash;
  record.identity.files = {{"plugin", plugin}};
  record.result.device = record::Device{};
  record.result.device->kind = "cpu", record.result.device->name = "a device";
  record.result.device->libraries = "demo 1.0";
  return record;
}

class Resumption : public ::testing::Test {
 protected:
  std::vector<OutdatedCase> outdated(const std::vector<record::CaseRecord>& records) {
    experiment_ = experiment_of({small_case(0)});
    plan_ = make_plan(experiment_, machine_.basis);
    return outdated_cases(plan_, records, {allow_, false, machine_.basis.files_of});
  }
  Machine machine_;
  std::vector<std::string> allow_;
  experiment::Experiment experiment_;
  RunPlan plan_;
};

TEST_F(Resumption, WhatOtherCodeHasMadeIsOutdatedAndSaysWhy) {
  const auto cases = outdated({finished_record("of before", "11ff")});
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].changes, std::vector<std::string>{"plugin: SHA-256 11ff then, SHA-256 00ff now"});
  EXPECT_EQ(cases[0].record.result.status, record::Status::outdated);
  EXPECT_TRUE(outdated({finished_record(plan_.cases[0].hash, "00ff")}).size() == 1)
      << "unless it is told to be finished";
  machine_.basis.finished = finished_cases({finished_record(plan_.cases[0].hash, "00ff")}, allow_, false);
  EXPECT_TRUE(outdated({finished_record(plan_.cases[0].hash, "00ff")}).empty());
}

TEST_F(Resumption, OtherThreadsAreNamed) {
  record::CaseRecord with_threads = finished_record("of before", "00ff");
  with_threads.result.threads.count = 1000;
  setenv(threads_variable, "3", 1);
  const auto cases = outdated({with_threads});
  unsetenv(threads_variable);
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].changes, std::vector<std::string>{"run.threads: 1000 then, 3 now"});
}

// An interruption ends the process that is asked for the device.
TEST_F(Resumption, WhileItsDeviceDoesNotAnswerNothingIsOutdated) {
  machine_.device.status = record::Status::failed;
  EXPECT_TRUE(outdated({finished_record("of before", "11ff")}).empty());
}

TEST_F(Resumption, TheLastRecordOfACaseCounts) {
  record::CaseRecord other = finished_record("other", "22ff");
  EXPECT_EQ(finished_cases({finished_record("of before", "11ff"), other}, allow_, false),
            (std::set<std::string>{finished_key("other", {})}));
  other.result.status = record::Status::outdated;
  EXPECT_TRUE(finished_cases({finished_record("of before", "11ff"), other}, allow_, false).empty());
  other = finished_record("other", "22ff"), other.host = "elsewhere";
  EXPECT_TRUE(finished_cases({other}, allow_, false).empty());
  EXPECT_EQ(finished_cases({other}, allow_, true).size(), 1u);
}

// What a user means by going on is the work that is there.
TEST_F(Resumption, ARunThatFailedAtOnceLeavesItToTheOneBeforeIt) {
  const ::assay::test::TemporaryFolder folder;
  experiment::Experiment experiment = experiment_of({small_case(0)});
  experiment.output.dir = folder.path(), experiment.resolved_toml = "name = \"demo\"\n";
  const auto put = [&](const std::string& stamp, record::Status status, const std::string& toml) {
    const std::filesystem::path run = folder.path() / "demo" / (stamp + "-00aa");
    std::filesystem::create_directories(run);
    record::CaseRecord record = finished_record("hash", "00ff");
    record.result.status = status;
    std::ofstream(run / "experiment.toml") << toml;
    std::ofstream(run / "cases.jsonl") << record::to_line(record) << "\n";
    return run;
  };
  EXPECT_FALSE(find_earlier_run(experiment, ""));
  const auto failed = put("20261120T120001Z", record::Status::failed, experiment.resolved_toml);
  EXPECT_EQ(find_earlier_run(experiment, "")->folder, failed) << "the only one";
  put("20261120T110000Z", record::Status::ok, "name = [");
  EXPECT_EQ(find_earlier_run(experiment, "")->folder, failed) << "a damaged older one is no matter of this call";
  const auto finished = put("20261120T120000Z", record::Status::ok, experiment.resolved_toml);
  const auto earlier = find_earlier_run(experiment, "");
  EXPECT_EQ(earlier->folder, finished);
  EXPECT_EQ(note_on_passed_over(*earlier), "--resume continues " + finished.string() +
                                               ", the newest run with a finished case; the newer " + failed.string() +
                                               " has none finished");
  put("20261120T120000Z", record::Status::ok, "name = \"demo\"\n[run]\nseed = 5\n");
  EXPECT_EQ(find_earlier_run(experiment, "")->folder, failed) << "the other one is of another experiment";
  put("20261120T120001Z", record::Status::unsupported, experiment.resolved_toml);
  EXPECT_EQ(find_earlier_run(experiment, "")->folder, failed);
  EXPECT_EQ(note_on_passed_over(*find_earlier_run(experiment, "")), "");
}

}  // namespace
}  // namespace assay::host::run::test
