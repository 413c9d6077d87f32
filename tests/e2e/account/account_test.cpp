// A stranger's plugins: the Axpy of README.md without an account, some of whose measured steps do nothing
// (tests/plugins_bad/unaccounted.cpp). Their own verification passes.
#include <nlohmann/json.hpp>
#include <string>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Unaccounted : public Sandbox {
 protected:
  json record_of(const std::string& plugin) {
    // Steps of about a millisecond, so that calls and clocks are nothing beside them.
    const auto records = records_of({.plugin = UNACCOUNTED_PLUGINS "/axpy_" + plugin + ".so",
                                     .params = "n = 4194304",
                                     .measure = "warmup = 5\nsteps = 12"},
                                    plugin == "all_without_an_account" ? 0 : 1);
    EXPECT_EQ(records.size(), 1u) << output();
    return records.empty() ? json::object() : records.front();
  }
  void expect_wrong(const std::string& plugin, const std::string& reason) {
    const json record = record_of(plugin);
    EXPECT_EQ(record["status"], "wrong_result") << record;
    EXPECT_FALSE(record.contains("phases"));
    EXPECT_PRED2(contains, record.value("reason", ""), reason);
  }
};

TEST_F(Unaccounted, StepsThatDoNothingWhenTheyAreMeasuredAreWrong) {
  expect_wrong("idle_when_measured", "a measured step skips work");
}

TEST_F(Unaccounted, EverySecondStepIsTooFew) {
  expect_wrong("every_second", "a quarter of the measured steps took at most");
}

TEST_F(Unaccounted, AWorkloadThatStopsWorkingForGoodIsWrong) {
  expect_wrong("in_warm_up_alone", "a new object's first steps took");
}

TEST_F(Unaccounted, AnHonestWorkloadWithoutAnAccountIsVerifiedInPart) {
  const json record = record_of("all_without_an_account");
  EXPECT_EQ(record["status"], "ok") << record["reason"];
  EXPECT_EQ(record["verify"]["status"], "partial");
  EXPECT_PRED2(contains, record["verify"].value("text", ""), "the workload keeps no account of them");
}

TEST_F(Unaccounted, ValidateFindsThem) {
  const auto found = [&](const std::string& plugin) {
    const RunResult result = run(
        {"validate", UNACCOUNTED_PLUGINS "/axpy_" + plugin + ".so", "--set", "n=4194304", "--level", "2", "--json"});
    const json report = json::parse(result.output);
    std::string names;
    for (const auto& workload : report.at("workloads"))
      for (const auto& check : workload.at("checks"))
        if (check.at("answer") == "error" || check.at("answer") == "warning")
          names += check.at("check").get<std::string>() + " ";
    return names;
  };
  EXPECT_EQ(found("idle_when_measured"), "run.stages account.kept ");
  EXPECT_EQ(found("every_second"), "run.stages account.kept ");
  EXPECT_EQ(found("in_warm_up_alone"), "run.stages account.kept ");
  EXPECT_EQ(found("all_without_an_account"), "account.kept ");
}

}  // namespace
}  // namespace assay::test
