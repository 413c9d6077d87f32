#include "run/verified_cases.hpp"

#include "planned_runs.hpp"

namespace assay::host::run::test {
namespace {

using record::Verification;

record::CaseRecord record_of(const CasePlan& planned, Verification status) {
  record::CaseRecord record;
  record.identity.index = planned.values.index;
  record.identity.repeat = planned.values.repeat;
  record.identity.hash = planned.hash;
  record.result.verify = record::VerificationResult{status, ""};
  record.result.algorithms = {{"matmul", "oneDNN"}};
  return record;
}

record::CaseRecord wrong_record_of(const CasePlan& planned, const std::string& part) {
  record::CaseRecord record = record_of(planned, Verification::wrong_result);
  record.result.status = record::Status::wrong_result;
  record.result.reason = "the loss is 3";
  record.result.stage = Stage::verify;
  record.result.part = part;
  return record;
}

class VerifiedCasesTest : public ::testing::Test {
 protected:
  // Three cases: the first two differ in how many steps are measured, the third in a parameter.
  VerifiedCasesTest() {
    std::vector<experiment::Case> cases{small_case(0), small_case(1), small_case(2, 8)};
    cases[1].measure.steps = 7;
    cases[1].measure.warmup = 9;
    cases[1].measure.sync = false;
    plan_ = make_plan(experiment_of(cases), machine_.basis);
  }
  const CasePlan& planned(std::size_t i) const { return plan_.cases[i]; }

  Machine machine_;
  RunPlan plan_;
  VerifiedCases first_{"first"};
};

TEST_F(VerifiedCasesTest, HowStepsAreMeasuredIsNoPartOfTheComputation) {
  EXPECT_NE(planned(0).hash, planned(1).hash);
  EXPECT_EQ(planned(0).computation, planned(1).computation);
  EXPECT_NE(planned(0).computation, planned(2).computation);
  std::vector<experiment::Case> cases{small_case(0), small_case(1), small_case(2)};
  cases[1].run.seed = 5;
  cases[2].measure.prepare = false;
  const RunPlan others = make_plan(experiment_of(cases), machine_.basis);
  EXPECT_NE(others.cases[0].computation, others.cases[1].computation);
  EXPECT_NE(others.cases[0].computation, others.cases[2].computation);
}

TEST_F(VerifiedCasesTest, ACaseRefersToTheFirstThatComputesTheSame) {
  EXPECT_FALSE(first_.asked_for(planned(0)).by_account);
  first_.add(planned(0), record_of(planned(0), Verification::partial));
  const worker::VerificationAsked asked = first_.asked_for(planned(1));
  EXPECT_TRUE(asked.by_account);
  ASSERT_TRUE(asked.first.has_value());
  EXPECT_EQ(asked.first->which.index, 0);
  EXPECT_EQ(asked.first->which.hash, planned(0).hash);
  EXPECT_EQ(asked.first->which.status, Verification::partial);
  EXPECT_EQ(asked.first->algorithms, (record::Named<std::string>{{"matmul", "oneDNN"}}));
  EXPECT_FALSE(first_.asked_for(planned(2)).by_account);
  EXPECT_FALSE(first_.known_wrong(planned(1)).has_value());
}

TEST_F(VerifiedCasesTest, WhatWasNotVerifiedInFullIsNobodysFirst) {
  record::CaseRecord referring = record_of(planned(0), Verification::as_case);
  referring.result.verify->refers_to = record::VerifiedCase{5, std::nullopt, "aa"};
  first_.add(planned(0), referring);
  first_.add(planned(0), record_of(planned(0), Verification::not_checked));
  record::CaseRecord failed = record_of(planned(0), Verification::ok);
  failed.result.status = record::Status::failed;
  first_.add(planned(0), failed);
  record::CaseRecord unverified = record_of(planned(0), Verification::ok);
  unverified.result.verify.reset();
  first_.add(planned(0), unverified);
  EXPECT_FALSE(first_.asked_for(planned(1)).by_account);
}

TEST_F(VerifiedCasesTest, WhatComputesWhatIsWrongIsWrong) {
  first_.add(planned(0), wrong_record_of(planned(0), "operations"));
  const auto known = first_.known_wrong(planned(1));
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->status, record::Status::wrong_result);
  EXPECT_NE(known->reason.find("the loss is 3"), std::string::npos) << known->reason;
  ASSERT_TRUE(known->verify && known->verify->refers_to);
  EXPECT_EQ(known->verify->refers_to->hash, planned(0).hash);
  EXPECT_FALSE(first_.known_wrong(planned(2)).has_value());
}

// Steps of one case that are too fast are no finding on those of another.
TEST_F(VerifiedCasesTest, WhatIsWrongWithTheStepsOfOneCaseIsItsOwn) {
  for (const char* part : {"repeated_steps", "new_objects", "peak"})
    first_.add(planned(0), wrong_record_of(planned(0), part));
  record::CaseRecord miscounted = wrong_record_of(planned(0), "");
  miscounted.result.stage = Stage::measure;
  first_.add(planned(0), miscounted);
  EXPECT_FALSE(first_.known_wrong(planned(1)).has_value());
  EXPECT_FALSE(first_.asked_for(planned(1)).by_account);
}

TEST_F(VerifiedCasesTest, FullAsksForAllOfEach) {
  VerifiedCases full("full");
  full.add(planned(0), record_of(planned(0), Verification::ok));
  full.add(planned(0), wrong_record_of(planned(0), "operations"));
  EXPECT_FALSE(full.asked_for(planned(1)).by_account);
  EXPECT_FALSE(full.known_wrong(planned(1)).has_value());
}

TEST_F(VerifiedCasesTest, SampledAsksForOneCaseInTenInItsFirstRepeat) {
  std::vector<experiment::Case> cases;
  for (std::int64_t i = 0; i < 22; ++i) cases.push_back(small_case(i));
  cases[20].repeat = 2;
  const RunPlan plan = make_plan(experiment_of(cases), machine_.basis);
  const VerifiedCases sampled("sampled");
  std::vector<std::int64_t> full;
  for (const CasePlan& each : plan.cases)
    if (!sampled.asked_for(each).by_account) full.push_back(each.values.index);
  EXPECT_EQ(full, (std::vector<std::int64_t>{0, 10}));
}

TEST_F(VerifiedCasesTest, ARecordIsVerifiedEnoughForWhatIsAskedToday) {
  const record::CaseRecord full = record_of(planned(0), Verification::ok);
  record::CaseRecord referring = record_of(planned(0), Verification::as_case);
  referring.result.verify->refers_to = record::VerifiedCase{};
  const record::CaseRecord by_account = record_of(planned(0), Verification::by_account);
  for (const char* verify : {"full", "first", "sampled"}) EXPECT_TRUE(is_verified_enough(full, verify)) << verify;
  EXPECT_FALSE(is_verified_enough(referring, "full"));
  EXPECT_TRUE(is_verified_enough(referring, "first"));
  EXPECT_TRUE(is_verified_enough(referring, "sampled"));
  EXPECT_FALSE(is_verified_enough(by_account, "full"));
  EXPECT_FALSE(is_verified_enough(by_account, "first"));
  EXPECT_TRUE(is_verified_enough(by_account, "sampled"));
}

}  // namespace
}  // namespace assay::host::run::test
