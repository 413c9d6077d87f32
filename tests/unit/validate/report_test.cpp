// What an Asker sends, and what a report makes of it.
#include "validate/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace assay::host::validate {
namespace {

std::string told_by(const std::function<void(const Asker&)>& probe) {
  std::string text;
  probe(Asker([&](std::string_view more) { text += more; }));
  return text;
}

TEST(Asker, TellsWhatIsAskedBeforeWhatIsFound) {
  const std::string text = told_by([](const Asker& asker) {
    asker.ask(Check::setup_works);
    asker.ask(Check::run_works);
    asker.at("step 2");
    asker.find(Check::run_works, "the device is \xff tired\n");
    asker.find(Check::verify_passes, "ASSAY_UNSUPPORTED: two ranks", ASSAY_UNSUPPORTED);
    asker.leave_out(Check::finish_works, "there is none");
    asker.send_tables("{\"id\":1}");
  });
  Answers answers;
  const Progress reported = take_in(text, answers);
  EXPECT_TRUE(reported.has_asked);
  EXPECT_EQ(reported.last, Check::run_works);
  EXPECT_EQ(reported.place, "step 2");
  EXPECT_EQ(reported.tables, "{\"id\":1}");
  EXPECT_EQ(answers.of(Check::setup_works).state, State::passed);
  EXPECT_EQ(answers.of(Check::run_works).state, State::found);
  EXPECT_EQ(answers.of(Check::run_works).text, "the device is ? tired?");
  EXPECT_EQ(answers.of(Check::run_works).status, ASSAY_OK) << "no refusal";
  EXPECT_EQ(answers.of(Check::verify_passes).status, ASSAY_UNSUPPORTED);
  EXPECT_EQ(answers.of(Check::finish_works).state, State::not_asked);
  EXPECT_EQ(answers.of(Check::finish_works).text, "there is none");
}

TEST(Asker, IsUnderstoodUpToTheLastWholeLine) {
  std::string text = told_by([](const Asker& asker) {
    asker.ask(Check::setup_works);
    asker.ask(Check::run_works);
  });
  Answers answers;
  EXPECT_EQ(take_in(text.substr(0, text.size() - 3), answers).last, Check::setup_works);
  EXPECT_FALSE(take_in("nonsense\n[1]\n{\"ask\":3}\n{\"ask\":\"nobody\"}\n", answers).has_asked);
  EXPECT_FALSE(take_in("", answers).has_asked);
}

TEST(Answers, KeepTheFirstFinding) {
  Answers answers;
  answers.find(Check::run_log, "first");
  answers.pass(Check::run_log);
  answers.find(Check::run_log, "second");
  answers.leave_out(Check::run_log, "left out");
  EXPECT_EQ(answers.of(Check::run_log).text, "first");
  EXPECT_TRUE(answers.has_findings());
}

Report sample() {
  Report report;
  report.file = "/a/long/path/" + std::string(120, 'x') + ".so";
  report.plugin.pass(Check::file_readable);
  report.plugin.find(Check::tables_help, "\u00e4 " + std::string(200, 'y'));
  WorkloadReport workload{"w", "cpu", {}};
  workload.answers.find(Check::run_works, "it does not");
  workload.answers.find(Check::seed_same, "it is another");
  report.workloads.push_back(workload);
  return report;
}

TEST(Report, IsATableOfNoMoreThanItsWidth) {
  std::istringstream lines(to_table(sample(), true));
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) EXPECT_LE(line.size(), 81u) << line;
  EXPECT_EQ(last, "1 passed, 1 error, 2 warnings");
}

TEST(Report, ShowsFindingsAlone) {
  Report report = sample();
  report.level = 2;
  report.workloads[0].answers.leave_out(Check::run_log, "run.works comes first");
  report.workloads[0].answers.leave_out(Check::run_output, "run.works comes first");
  const std::string text = to_table(report);
  EXPECT_EQ(text.find("file.readable"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  error      run.works            it does not"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  not asked  2 checks             run.works comes first\n"), std::string::npos) << text;
  EXPECT_NE(to_table(report, true).find("  ok         file.readable"), std::string::npos);
}

TEST(Report, LeavesOutLevelsThatWereNotAsked) {
  Report report = sample();
  report.level = 2;
  EXPECT_EQ(report.count(Severity::error), 1u);
  EXPECT_EQ(report.count(Severity::warning), 1u);
  EXPECT_EQ(to_table(report).find("seed.same"), std::string::npos);
  report.level = 1;
  EXPECT_EQ(report.count(Severity::error), 0u);
}

TEST(Report, IsOneObjectWithARemedyForEachFinding) {
  const auto json = to_json(sample());
  EXPECT_EQ(json.at("errors"), 1);
  EXPECT_EQ(json.at("warnings"), 2);
  EXPECT_EQ(json.at("checks").at(0).at("check"), "file.readable");
  EXPECT_EQ(json.at("checks").at(0).at("answer"), "ok");
  EXPECT_FALSE(json.at("checks").at(0).contains("remedy"));
  const auto& checks = json.at("workloads").at(0).at("checks");
  const auto found =
      std::find_if(checks.begin(), checks.end(), [](const auto& check) { return check.at("check") == "run.works"; });
  ASSERT_NE(found, checks.end());
  EXPECT_EQ(found->at("answer"), "error");
  EXPECT_EQ(found->at("text"), "it does not");
  EXPECT_EQ(found->at("remedy"), row_of(Check::run_works).remedy);
}

}  // namespace
}  // namespace assay::host::validate
