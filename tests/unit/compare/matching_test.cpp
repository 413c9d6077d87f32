#include "compare/matching.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

class Matching : public ::testing::Test {
 protected:
  static Json record(const Json& params, const Json& axes = Json::object()) {
    return record_of(params, {1, 1, 1}, axes);
  }
  // The records stay where they are while the cases point at them.
  Matches match(const std::vector<record::CaseRecord>& a, const std::vector<record::CaseRecord>& b,
                const MatchRules& rules = {}) {
    records_a_ = a, records_b_ = b;
    std::set<std::string> axes;
    for (const auto* records : {&records_a_, &records_b_})
      for (const record::CaseRecord& r : *records)
        for (const auto& axis : r.identity.axes) axes.insert(axis.first);
    cases_a_ = cases_of(pointers(records_a_), axes), cases_b_ = cases_of(pointers(records_b_), axes);
    return match_cases(cases_a_, cases_b_, rules);
  }
  static std::vector<const record::CaseRecord*> pointers(const std::vector<record::CaseRecord>& records) {
    std::vector<const record::CaseRecord*> result;
    for (const record::CaseRecord& r : records) result.push_back(&r);
    return result;
  }
  std::vector<record::CaseRecord> records_a_, records_b_;
  std::vector<SideCase> cases_a_, cases_b_;
};

using Kind = Match::Kind;

TEST_F(Matching, ByAxesAndParametersWhateverTheOrderAndTheDevice) {
  Json gpu_small = record({{"size", "small"}, {"lr", 1}}, {{"size", "small"}});
  gpu_small["device"] = {{"kind", "cuda"}};
  Json gpu_large = record({{"size", "large"}, {"lr", 1}}, {{"size", "large"}});
  gpu_large["device"] = {{"kind", "cuda"}};
  const Matches matches = match({record({{"size", "small"}, {"lr", 1.0}}, {{"size", "small"}}),
                                 record({{"size", "large"}, {"lr", 1.0}}, {{"size", "large"}})},
                                {gpu_large, gpu_small});
  ASSERT_EQ(matches.of_baseline.size(), 2u);
  EXPECT_EQ(matches.of_baseline[0].kind, Kind::found);
  EXPECT_EQ(matches.of_baseline[0].other, &cases_b_[1]);
  EXPECT_EQ(matches.of_baseline[1].other, &cases_b_[0]);
  EXPECT_TRUE(matches.only_other.empty());
}

TEST_F(Matching, CasesThatOneSideAloneHas) {
  const Matches matches = match({record({{"size", "small"}}), record({{"size", "large"}})},
                                {record({{"size", "small"}}), record({{"size", "xl"}})});
  EXPECT_EQ(matches.of_baseline[0].kind, Kind::found);
  EXPECT_EQ(matches.of_baseline[1].kind, Kind::missing);
  ASSERT_EQ(matches.only_other.size(), 1u);
  EXPECT_EQ(matches.only_other[0], &cases_b_[1]);
}

TEST_F(Matching, OtherParametersAreRefusedWithTheRemedy) {
  const std::vector<record::CaseRecord> a{record({{"size", "small"}, {"context_length", 256}})},
      b{record({{"size", "small"}, {"context_length", 512}})};
  const Matches refused = match(a, b);
  EXPECT_EQ(refused.of_baseline[0].kind, Kind::refused);
  EXPECT_EQ(refused.of_baseline[0].reason,
            "other inputs: context_length 256 / 512; compare all the same with --across context_length");
  EXPECT_TRUE(refused.only_other.empty());
  EXPECT_EQ(match(a, b, {{"context_length"}, false}).of_baseline[0].kind, Kind::found);
}

// What ran counts, whoever chose it: [run] threads, a variable, or the processors of the machine.
TEST_F(Matching, OtherThreadsAreAnotherCase) {
  const auto with = [](std::int64_t count, const char* from) {
    Json r = record({{"size", "small"}});
    r["threads"] = {{"count", count}, {"count_from", from}};
    r["settings"]["run.threads"] = from == std::string("[run] threads") ? count : 0;
    return r;
  };
  const Json two = with(2, "2 usable processors"), asked = with(2, "[run] threads"), one = with(1, "OMP_NUM_THREADS=1");
  EXPECT_EQ(match({two}, {asked}).of_baseline[0].kind, Kind::found);
  const Matches refused = match({two}, {one});
  EXPECT_EQ(refused.of_baseline[0].kind, Kind::refused);
  EXPECT_EQ(refused.of_baseline[0].reason,
            "other inputs: run.threads 2 / 1; compare all the same with --across run.threads");
  EXPECT_EQ(match({two}, {one}, {{"run.threads"}, false}).of_baseline[0].kind, Kind::found);
  // Two runs of a side that had other threads are not two runs of one case, and each finds its own.
  const Matches each = match({two, one}, {one, two});
  EXPECT_EQ(each.of_baseline[0].other, &cases_b_[1]);
  EXPECT_EQ(each.of_baseline[1].other, &cases_b_[0]);
  EXPECT_EQ(match({two, one}, {two}).of_baseline[1].kind, Kind::refused);
}

TEST_F(Matching, ThreadsThatARecordDoesNotSayAreAssumedToAgree) {
  Json two = record({{"size", "small"}}), older = two, on_gpu = two;
  two["threads"] = {{"count", 2}, {"count_from", "2 usable processors"}};
  older["settings"]["run.threads"] = 0;
  on_gpu["device"] = {{"kind", "cuda"}};
  on_gpu["settings"]["run.threads"] = 7;
  const Matches assumed = match({two}, {older});
  EXPECT_EQ(assumed.of_baseline[0].kind, Kind::found);
  EXPECT_EQ(assumed.of_baseline[0].only_baseline, (std::vector<std::string>{"run.threads=2"}));
  // There the threads only serve the host.
  const Matches devices = match({two}, {on_gpu});
  EXPECT_EQ(devices.of_baseline[0].kind, Kind::found);
  EXPECT_TRUE(devices.of_baseline[0].only_baseline.empty());
  Json other_gpu = on_gpu;
  other_gpu["settings"]["run.threads"] = 3;
  EXPECT_EQ(match({on_gpu}, {other_gpu}).of_baseline[0].kind, Kind::found);
}

// Ranks that divide the processors have fewer threads each: that is what another number of ranks means.
TEST_F(Matching, ThreadsThatFollowFromTheRanksAreNoDifferenceOfTheirOwn) {
  Json one = record({{"size", "small"}});
  one["threads"] = {{"count", 2}, {"count_from", "2 usable processors"}};
  Json two = record({{"size", "small"}});
  two["ranks"] = 2;
  two["threads"] = {{"count", 1}, {"count_from", "2 usable processors, shared by 2 ranks"}};
  EXPECT_EQ(match({one}, {two}).of_baseline[0].reason,
            "other number of ranks: run.ranks 1 / 2; compare all the same with --any");
  EXPECT_EQ(match({one}, {two}, {{}, true}).of_baseline[0].kind, Kind::found);
  EXPECT_EQ(match({one}, {two}, {{"run.ranks"}, false}).of_baseline[0].kind, Kind::found);
  two["threads"]["count_from"] = "[run] threads";
  EXPECT_EQ(match({one}, {two}, {{}, true}).of_baseline[0].reason,
            "other inputs: run.threads 2 / 1; compare all the same with --across run.threads");
}

TEST_F(Matching, OtherRanksAreRefusedUnlessAskedFor) {
  Json two = record({{"size", "small"}});
  two["ranks"] = 2;
  const Matches refused = match({record({{"size", "small"}})}, {two});
  EXPECT_EQ(refused.of_baseline[0].kind, Kind::refused);
  EXPECT_EQ(refused.of_baseline[0].reason, "other number of ranks: run.ranks 1 / 2; compare all the same with --any");
  EXPECT_EQ(match({record({{"size", "small"}})}, {two}, {{}, true}).of_baseline[0].kind, Kind::found);
}

TEST_F(Matching, TimesThatWereTakenOtherwiseAreRefused) {
  Json without = record({});
  without["settings"]["measure.sync"] = false;
  EXPECT_EQ(match({record({})}, {without}).of_baseline[0].kind, Kind::refused);
}

// However many steps a sample has: one that was waited for is another time than the share of several back to back.
TEST_F(Matching, StepsBackToBackAreNotComparedWithThoseThatWereWaitedFor) {
  const auto of_inner = [](int inner, const Json& asked) {
    Json r = record({});
    r["settings"]["measure.inner"] = asked;
    r["sampling"] = {{"mode", inner == 1 ? "waited" : "back to back"}, {"inner", inner}, {"cold", false}};
    return r;
  };
  const Matches refused = match({of_inner(1, 1)}, {of_inner(640, "auto")});
  EXPECT_EQ(refused.of_baseline[0].kind, Kind::refused);
  EXPECT_EQ(refused.of_baseline[0].reason,
            "other inputs: measure.inner 1 / several; compare all the same with --across measure.inner");
  EXPECT_EQ(match({of_inner(512, "auto")}, {of_inner(640, "auto")}).of_baseline[0].kind, Kind::found);
  EXPECT_EQ(match({of_inner(1, "auto")}, {of_inner(1, 1)}).of_baseline[0].kind, Kind::found);
  // A record of a time when there was no such setting.
  EXPECT_EQ(match({record({})}, {of_inner(1, 1)}).of_baseline[0].kind, Kind::found);
  EXPECT_EQ(match({record({})}, {of_inner(640, "auto")}).of_baseline[0].kind, Kind::refused);
}

TEST_F(Matching, ColdCachesAreNotComparedWithWarmOnes) {
  Json cold = record({});
  cold["settings"]["measure.cold_cache"] = true;
  EXPECT_EQ(match({record({})}, {cold}).of_baseline[0].kind, Kind::refused);
}

TEST_F(Matching, SettingsThatAreNoAxisDoNotMatter) {
  Json more_warmup = record({});
  more_warmup["settings"]["measure.warmup"] = 50;
  more_warmup["settings"]["measure.steps"] = 100;
  EXPECT_EQ(match({record({})}, {more_warmup}).of_baseline[0].kind, Kind::found);
}

TEST_F(Matching, ASettingAsAnAxisTellsCasesApart) {
  std::vector<record::CaseRecord> sweep;
  for (const int warmup : {0, 5}) {
    Json swept = record({}, {{"measure.warmup", warmup}});
    swept["settings"]["measure.warmup"] = warmup;
    sweep.push_back(swept);
  }
  Json plain = record({});  // its setting is 5
  const Matches matches = match(sweep, {plain});
  EXPECT_EQ(matches.of_baseline[0].kind, Kind::missing);
  EXPECT_EQ(matches.of_baseline[1].kind, Kind::found);
}

TEST_F(Matching, ASweepOverDevicesTellsCasesApart) {
  std::vector<record::CaseRecord> sweep;
  for (const char* kind : {"cpu", "cuda"}) {
    Json swept = record({}, {{"run.device", kind}});
    swept["device"]["kind"] = kind;
    sweep.push_back(swept);
  }
  const Matches both = match(sweep, {sweep[1], sweep[0]});
  EXPECT_EQ(both.of_baseline[0].other, &cases_b_[1]);
  EXPECT_EQ(both.of_baseline[1].other, &cases_b_[0]);
  const Matches one = match(sweep, {record({})});  // on the CPU
  EXPECT_EQ(one.of_baseline[0].kind, Kind::found);
  EXPECT_EQ(one.of_baseline[1].kind, Kind::missing);
  // One device on each side, even if by an axis: that is what is compared.
  EXPECT_EQ(match({sweep[0]}, {sweep[1]}).of_baseline[0].kind, Kind::found);
}

TEST_F(Matching, WhatOneSideDoesNotSayIsTakenToAgreeAndTold) {
  const Matches matches = match({record({{"size", "small"}, {"source", 1}})},
                                {record({{"size", "small"}, {"execution", "graph"}, {"weights", ""}})});
  ASSERT_EQ(matches.of_baseline[0].kind, Kind::found);
  EXPECT_EQ(matches.of_baseline[0].only_baseline, std::vector<std::string>{"source=1"});
  EXPECT_EQ(matches.of_baseline[0].only_other, std::vector<std::string>{"execution=graph"});
}

TEST_F(Matching, SeveralCandidatesAreRefusedWithWhatTellsThemApart) {
  const std::vector<record::CaseRecord> one{record({{"size", "small"}})};
  const std::vector<record::CaseRecord> two{record({{"size", "small"}, {"execution", "eager"}}),
                                            record({{"size", "small"}, {"execution", "graph"}})};
  const Matches matches = match(one, two);
  EXPECT_EQ(matches.of_baseline[0].kind, Kind::refused);
  EXPECT_EQ(matches.of_baseline[0].reason, "2 cases could be meant, which differ in execution (eager, graph)");
  const Matches reversed = match(two, one);
  ASSERT_EQ(reversed.of_baseline.size(), 2u);
  for (const Match& m : reversed.of_baseline) {
    EXPECT_EQ(m.kind, Kind::refused);
    EXPECT_EQ(m.reason, "2 cases of the baseline could be meant, which differ in execution (eager, graph)");
  }
}

// It stands among cases that are found by what they say.
TEST_F(Matching, ACaseThatDoesNotSayWhatVariesMayBeAnyOfThem) {
  const auto sized = [](int n) { return record({{"n", n}, {"lr", 1}}, {{"n", n}}); };
  const Matches matches = match({sized(1), sized(2), record({{"lr", 1}})}, {sized(3), record({{"lr", 1}}), sized(1)});
  ASSERT_EQ(matches.of_baseline.size(), 3u);
  EXPECT_TRUE(matches.of_baseline[0].reason.starts_with("2 cases could be meant")) << matches.of_baseline[0].reason;
  EXPECT_EQ(matches.of_baseline[1].kind, Kind::found);
  EXPECT_EQ(matches.of_baseline[1].other, &cases_b_[1]);
  EXPECT_TRUE(matches.of_baseline[2].reason.starts_with("3 cases could be meant")) << matches.of_baseline[2].reason;
  EXPECT_TRUE(matches.only_other.empty());
}

TEST_F(Matching, OtherWorkloadsHaveNothingInCommon) {
  Json other = record({});
  other["workload"] = "attention";
  const Matches matches = match({record({})}, {other});
  EXPECT_EQ(matches.of_baseline[0].kind, Kind::missing);
  EXPECT_EQ(matches.only_other.size(), 1u);
}

TEST_F(Matching, SeveralRunsOfOneCaseAreOneCase) {
  const Matches matches =
      match({record({{"size", "small"}}), record({{"size", "small"}})},
            {record({{"size", "small"}}), record({{"size", "small"}}), record({{"size", "small"}})});
  ASSERT_EQ(matches.of_baseline.size(), 1u);
  EXPECT_EQ(cases_a_[0].records.size(), 2u);
  EXPECT_EQ(matches.of_baseline[0].other->records.size(), 3u);
}

}  // namespace
}  // namespace assay::host::compare
