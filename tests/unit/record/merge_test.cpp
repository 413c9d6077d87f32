#include "record/merge.hpp"

#include "rank_samples.hpp"
#include "sample_record.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace assay::host {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

TEST(MergeRanks, AStepTakesAsLongAsItsSlowestRank) {
  const Json merged = merge_ranks(three_ranks(), 0.9);
  const Json& step = merged["phases"]["step"];
  EXPECT_EQ(step["samples_ms"].get<Numbers>(), (Numbers{22, 21, 22, 21}));
  EXPECT_DOUBLE_EQ(step["mean_ms"].get<double>(), 21.5);
  EXPECT_DOUBLE_EQ(step["p50_ms"].get<double>(), 21.5);
  EXPECT_FALSE(step.contains("p95_ms")) << "four samples have none";
  EXPECT_EQ(step["confidence"], 0.9);
  EXPECT_EQ(step["n"], 4);
  EXPECT_EQ(step["share"], 1.0);
  EXPECT_DOUBLE_EQ(step["host_mean_ms"].get<double>(), (20.5 + 20.25 + 20.75) / 3) << "of which there are no samples";
  EXPECT_DOUBLE_EQ(step["device_mean_ms"].get<double>(), (20.5 + 20.25 + 20.75) / 6);
  EXPECT_TRUE(merged["drift"].is_null());
  EXPECT_EQ(merged["status"], "ok");
}

TEST(MergeRanks, OtherPhasesAreTheMeanOverTheRanks) {
  const Json merged = merge_ranks(three_ranks(), 0.95);
  const Json& wait = merged["phases"]["wait"];
  EXPECT_EQ(wait["samples_ms"].get<Numbers>(), (Numbers{2, 2, 3, 3}));
  EXPECT_DOUBLE_EQ(wait["mean_ms"].get<double>(), 2.5);
  EXPECT_DOUBLE_EQ(wait["share"].get<double>(), 2.5 / 21.5);
  EXPECT_DOUBLE_EQ(wait["host_mean_ms"].get<double>(), 0.25);
}

// Which are other steps than those whose mean the step has.
TEST(MergeRanks, PhasesOfAPassOfTheirOwnAreSharesOfItsSteps) {
  auto ranks = three_ranks();
  for (RankPart& rank : ranks)
    rank.part["phase_pass"] = {{"steps", 4}, {"step_mean_ms", 24.0 + rank.rank}, {"events", 8}, {"event_us", 2.5}};
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["phase_pass"], (Json{{"steps", 4}, {"step_mean_ms", 26.0}, {"events", 8}, {"event_us", 2.5}}));
  EXPECT_DOUBLE_EQ(merged["phases"]["wait"]["share"].get<double>(), 2.5 / 26);
  EXPECT_EQ(merged["phases"]["step"]["share"], 1.0);
}

TEST(MergeRanks, DriftAndNotesAreThoseOfTheSlowestTimes) {
  auto ranks = three_ranks();
  ranks.pop_back();
  ranks[0].part = part_of({10, 10, 10, 10, 10, 10}, {1, 1, 1, 1, 1, 1});
  ranks[1].part = part_of({5, 5, 5, 5, 20, 20}, {1, 1, 1, 1, 1, 1});
  for (RankPart& rank : ranks)
    rank.part["notes"] = record::steadiness_notes(rank.part["phases"]["step"]["samples_ms"].get<Numbers>());
  ASSERT_EQ(ranks[1].part["notes"].size(), 2u);
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_DOUBLE_EQ(merged["drift"].get<double>(), 10.0 / (80.0 / 6));
  const Texts notes = merged["notes"].get<Texts>();
  EXPECT_EQ(notes, record::steadiness_notes(Numbers{10, 10, 10, 10, 20, 20}));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[1].starts_with("the step time drifts by +75.0%")) << notes[1];
}

TEST(MergeRanks, WorkIsOfOneRankAndRatesAreOfAll) {
  auto ranks = three_ranks();
  ranks[2].part["work"]["items"] = 5;
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["work"]["items"], 10);
  EXPECT_DOUBLE_EQ(merged["rates"]["items_per_s"].get<double>(), 25 / 21.5e-3);
  EXPECT_DOUBLE_EQ(merged["rates"]["gflop_per_s"].get<double>(), 6e6 / 21.5e-3 * 1e-9);
  EXPECT_FALSE(merged["rates"].contains("gbytes_per_s"));
}

TEST(MergeRanks, RatesOfCopiesAreThoseOfOne) {
  auto ranks = three_ranks();
  for (RankPart& rank : ranks) rank.part["copies"] = 3;
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["copies"], 3);
  EXPECT_DOUBLE_EQ(merged["rates"]["items_per_s"].get<double>(), 10 / 21.5e-3);
  EXPECT_DOUBLE_EQ(merged["rates"]["gflop_per_s"].get<double>(), 2e6 / 21.5e-3 * 1e-9);
}

TEST(MergeRanks, EachRankIsInTheRecord) {
  auto ranks = three_ranks();
  std::swap(ranks[0], ranks[2]);  // in whatever order they came
  const Json merged = merge_ranks(ranks, 0.95);
  ASSERT_EQ(merged["by_rank"].size(), 3u);
  const Json& second = merged["by_rank"][1];
  EXPECT_EQ(second["rank"], 1);
  EXPECT_EQ(second["host"], "n1");
  EXPECT_EQ(second["device"], 0);
  EXPECT_DOUBLE_EQ(second["step_mean_ms"].get<double>(), 20.25);
  EXPECT_DOUBLE_EQ(second["step_p50_ms"].get<double>(), 20.5);
  EXPECT_DOUBLE_EQ(second["step_min_ms"].get<double>(), 19);
  EXPECT_DOUBLE_EQ(second["step_max_ms"].get<double>(), 21);
  EXPECT_NEAR(second["step_std_ms"].get<double>(), 0.957427, 1e-6);
  EXPECT_EQ(second["phases"], Json({{"wait", 2.75}}));
  EXPECT_EQ(second["process_peak_mib"], 10.0);
  EXPECT_EQ(merged["straggler"], Json({{"rank", 2}, {"share", 0.5}}));
  EXPECT_DOUBLE_EQ(merged["spread"].get<double>(), 0.5 / 20.5);
}

TEST(MergeRanks, MetricsThatDifferAreMeansAndStandWithTheirRanks) {
  auto ranks = three_ranks();
  for (RankPart& rank : ranks) {
    rank.part["metrics"] = {{"parameters", {{"value", 100}, {"unit", ""}, {"direction", 0}}},
                            {"owned", {{"value", 10 * rank.rank}, {"unit", "B"}, {"direction", 0}}}};
    const double first = rank.rank;
    rank.part["step_metrics"]["loss"] = step_metric("nat", Direction::lower_is_better, {first, 2, 2, 1});
  }
  ranks[2].part["metrics"]["only here"] = {{"value", 7}, {"unit", ""}, {"direction", 0}};
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["metrics"]["parameters"], ranks[0].part["metrics"]["parameters"]);
  EXPECT_EQ(merged["metrics"]["owned"], Json({{"value", 10.0}, {"unit", "B"}, {"direction", 0}}));
  EXPECT_EQ(merged["metrics"]["only here"]["value"], 7.0);
  EXPECT_EQ(merged["step_metrics"]["loss"]["samples"].get<Numbers>(), (Numbers{1, 2, 2, 1}));
  EXPECT_EQ(merged["step_metrics"]["loss"]["mean"], 1.5);
  EXPECT_EQ(merged["step_metrics"]["loss"]["last"], 1.0);
  EXPECT_EQ(merged["step_metrics"]["loss"]["unit"], "nat");
  EXPECT_EQ(merged["by_rank"][0]["metrics"], Json({{"owned", 0}}));
  EXPECT_EQ(merged["by_rank"][2]["metrics"], Json({{"owned", 20}, {"only here", 7}}));
  EXPECT_EQ(merged["by_rank"][2]["step_metrics"], Json({{"loss", 1.75}}));
}

TEST(MergeRanks, WordsThatDifferStandBesideEachOther) {
  auto ranks = three_ranks();
  const auto metric = [](int value, const char* word) {
    return Json({{"value", value}, {"unit", ""}, {"direction", 0}, {"word", word}});
  };
  for (RankPart& rank : ranks)
    rank.part["metrics"] = {{"same", metric(1, "bf16")},
                            {"different", rank.rank == 1 ? metric(0, "fp32") : metric(1, "bf16")}};
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["metrics"]["same"], metric(1, "bf16"));
  EXPECT_EQ(csv_text(cell_of(merged, "different")), "bf16/fp32");
  EXPECT_TRUE(merged["metrics"]["different"]["value"].is_null());
  EXPECT_EQ(merged["by_rank"][1]["metrics"], Json({{"different", "fp32"}}));
}

TEST(MergeRanks, AMetricThatIsNoNumberOnOneRankIsNoneInTheRecord) {
  auto ranks = three_ranks();
  for (RankPart& rank : ranks) rank.part["metrics"] = {{"loss", {{"value", 1.5}, {"unit", ""}, {"direction", -1}}}};
  ranks[1].part["metrics"]["loss"]["value"] = nullptr;  // how JSON carried it here
  EXPECT_TRUE(cell_of(merge_ranks(ranks, 0.95), "loss").empty());
}

TEST(MergeRanks, MemoryIsTheLargestRanksByKindAndMoment) {
  const auto moment = [](const char* name, double mib) {
    return Json{{"name", name}, {"current_mib", {{"parameters", mib}}}, {"current_total_mib", mib}};
  };
  auto ranks = three_ranks();
  Json& first = ranks[0].part["memory"];
  first["moments"] = {moment("setup", 1), moment("step", 5), moment("step", 6)};
  first["peak_mib"] = {{"parameters", 5.0}};
  Json& last = ranks[2].part["memory"];
  last["moments"] = {moment("setup", 3), moment("step", 4), moment("step", 9), moment("late", 2)};
  last["peak_mib"] = {{"parameters", 4.0}, {"gradients", 7.0}};
  last["process_peak_mib"] = 30.0;
  first["step_peak_mib"] = {{"mean", 5.0}, {"min", 4.0}, {"max", 8.0}};
  last["step_peak_mib"] = {{"mean", 6.0}, {"min", 3.0}, {"max", 7.0}};
  const Json merged = merge_ranks(ranks, 0.95)["memory"];
  EXPECT_EQ(merged["step_peak_mib"], Json({{"mean", 6.0}, {"min", 4.0}, {"max", 8.0}}));
  first["step_peak_mib"]["samples"] = {8.0, 4.0};
  EXPECT_FALSE(merge_ranks(ranks, 0.95)["memory"]["step_peak_mib"].contains("samples")) << "of one rank alone";
  last["step_peak_mib"]["samples"] = {3.0, 7.0};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["memory"]["step_peak_mib"]["samples"], Json({8.0, 7.0}));
  const auto spread = [&](Json of_moment, double mib) {
    of_moment["rank_spread_mib"] = mib;
    return of_moment;
  };
  EXPECT_EQ(merged["moments"], Json({spread(moment("setup", 3), 2), spread(moment("step", 5), 1),
                                     spread(moment("step", 9), 3), moment("late", 2)}));
  EXPECT_EQ(merged["peak_mib"], Json({{"parameters", 5.0}, {"gradients", 7.0}}));
  EXPECT_EQ(merged["process_peak_mib"], 30.0);
}

// The largest of each are of different ranks, and what is left between them is of none.
TEST(MergeRanks, WhereRanksHoldOtherMemoryThereIsNoDifference) {
  const auto moment = [](const char* name, const char* kind, double mib) {
    return Json{{"name", name}, {"current_mib", {{kind, mib}}}, {"current_total_mib", mib}};
  };
  auto ranks = three_ranks();
  for (auto& rank : ranks)
    rank.part["memory"]["moments"] = {moment("early", "activations", 100.0), moment("late", "parameters", 100.5)};
  EXPECT_EQ(cell_of(merge_ranks(ranks, 0.95), "memory.late.other.mib").number(), 0.0);
  EXPECT_EQ(cell_of(merge_ranks(ranks, 0.95), "memory.late.since.early.mib").number(), 0.5);
  ranks[1].part["memory"]["moments"] = {moment("early", "activations", 10.0), moment("late", "optimizer_state", 100.5)};
  EXPECT_TRUE(cell_of(merge_ranks(ranks, 0.95), "memory.late.other.mib").empty());
  EXPECT_TRUE(cell_of(merge_ranks(ranks, 0.95), "memory.late.since.early.mib").empty());
}

TEST(MergeRanks, PartsAreThoseOfTheRankWhoseStageTookLongest) {
  auto ranks = three_ranks();
  ranks[0].part["wall_s"] = {{"verify", 3.0}, {"verify_parts", {{"data", 2.0}, {"averages", 1.0}}}};
  ranks[1].part["wall_s"] = {{"verify", 4.0}, {"verify_parts", {{"data", 0.5}, {"optimizer", 3.5}}}};
  ranks[2].part["wall_s"] = {{"verify", 1.0}, {"verify_parts", {{"data", 1.0}}}};
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["wall_s"], Json({{"verify", 4.0}, {"verify_parts", {{"data", 0.5}, {"optimizer", 3.5}}}}));
}

TEST(MergeRanks, TimesAndContentionAreTheLargest) {
  auto ranks = three_ranks();
  ranks[1].part["wall_s"] = {{"setup", 0.75}, {"case", 1.0}};
  ranks[1].part["contention"] = {{"window_s", 1.0}, {"others_share", 0.25}};
  ranks[2].part["contention"] = {{"window_s", 0.5}, {"steal_share", 0.5}};
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["wall_s"], Json({{"setup", 0.75}, {"case", 2.0}}));
  EXPECT_EQ(merged["contention"], Json({{"window_s", 1.0}, {"others_share", 0.25}, {"steal_share", 0.5}}));
  EXPECT_FALSE(merge_ranks(three_ranks(), 0.95).contains("contention"));
}

TEST(MergeRanks, TheUtilisationOfAStepIsTheMeanOfTheRanksThatAllTellIt) {
  auto ranks = three_ranks();
  const Json reported[] = {{10.0, 50.0}, {20.0, 50.0}, {60.0, 80.0}};
  for (std::size_t i = 0; i < 3; ++i)
    ranks[i].part["telemetry"] = {{"samples", 9}, {"step_utilisation_percent", reported[i]}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["telemetry"]["step_utilisation_percent"], Json({30.0, 60.0}));
  auto fewer = ranks;
  fewer[2].part["telemetry"]["step_utilisation_percent"] = {60.0};
  EXPECT_FALSE(merge_ranks(fewer, 0.95)["telemetry"].contains("step_utilisation_percent"));
  auto none = ranks;
  none[0].part["telemetry"].erase("step_utilisation_percent");
  EXPECT_FALSE(merge_ranks(none, 0.95)["telemetry"].contains("step_utilisation_percent"));
  auto silent = ranks;
  silent[1].part.erase("telemetry");
  EXPECT_FALSE(merge_ranks(silent, 0.95)["telemetry"].contains("step_utilisation_percent"));
}

TEST(MergeRanks, NotesOfOtherRanksCarryTheirNumbers) {
  auto ranks = three_ranks();
  ranks[0].part["notes"] = {"all say this", "the first says this"};
  ranks[1].part["notes"] = {"all say this", "two say this"};
  ranks[2].part["notes"] = {"two say this", "the last says this"};
  EXPECT_EQ(
      merge_ranks(ranks, 0.95)["notes"].get<Texts>(),
      (Texts{"all say this", "the first says this", "ranks 1 and 2: two say this", "rank 2: the last says this"}));
}

TEST(MergeRanks, ANoteSaysWhichDevicesDifferOrAreShared) {
  const auto cuda = [](int ordinal, const char* name) {
    return Json{{"kind", "cuda"}, {"ordinal", ordinal}, {"name", name}};
  };
  auto ranks = three_ranks();
  ranks[0].part["device"] = cuda(0, "a GPU");
  ranks[1].part["device"] = cuda(0, "a GPU");
  ranks[2].part["device"] = cuda(1, "another GPU");
  EXPECT_EQ(merge_ranks(ranks, 0.95)["notes"].get<Texts>(),
            (Texts{"the ranks' devices differ: ranks 0 and 1 on a GPU; rank 2 on another GPU"}));
  ranks[2].part["device"]["name"] = "a GPU";
  for (RankPart& rank : ranks) rank.host = "n1";
  const Json shared = merge_ranks(ranks, 0.95);
  EXPECT_EQ(shared["notes"].get<Texts>(),
            (Texts{"2 ranks share GPU 0 of host n1: good for correctness, not for bandwidth or overlap"}));
  EXPECT_EQ(shared["device"]["ordinal"], 0);
  EXPECT_EQ(shared["by_rank"][2]["device"], 1);
  ranks[0].device_id = "00:1a", ranks[1].device_id = "00:1b";
  EXPECT_TRUE(merge_ranks(ranks, 0.95)["notes"].empty()) << "each sees its own GPU as number 0";
  EXPECT_TRUE(merge_ranks(three_ranks(), 0.95)["notes"].empty()) << "one processor is nothing to share";
}

TEST(MergeRanks, ANoteSaysWhichLibrariesAndAlgorithmsDiffer) {
  Json first = part_of({1, 2}, {1, 2}), other = first;
  first["libraries"] = {{"liba.so", "b1"}, {"libc.so.6", "c1"}, {"libonly.so", "o1"}};
  first["algorithms"] = {{"matmul 8x8", "tile 16"}, {"matmul 8x16", "tile 16"}};
  other["libraries"] = {{"liba.so", "b2"}, {"libc.so.6", "c1"}, {"libmore.so", "m1"}};
  other["algorithms"] = {{"matmul 8x8", "tile 32"}, {"matmul 16x8", "tile 16"}};
  const Json merged = merge_ranks({{0, "n1", first}, {1, "n1", first}, {2, "n2", other}}, 0.95);
  EXPECT_EQ(merged["libraries"], first["libraries"]);
  EXPECT_EQ(merged["algorithms"], first["algorithms"]);
  const auto notes = merged["notes"].get<std::vector<std::string>>();
  const auto has = [&](const std::string& note) { return std::find(notes.begin(), notes.end(), note) != notes.end(); };
  EXPECT_TRUE(
      has("rank 2 has loaded other libraries than rank 0: liba.so (b2, not b1), libmore.so (too), libonly.so "
          "(missing)"))
      << merged["notes"];
  EXPECT_TRUE(has("rank 2 has chosen other algorithms than rank 0: matmul 8x8 (tile 32, not tile 16)"));
  EXPECT_EQ(std::count_if(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.find(" other ") != std::string::npos; }),
            2);
}

TEST(MergeRanks, FilesOfProfilesAreTheFirstRanks) {
  auto ranks = three_ranks();
  ranks[0].part["memory_snapshot"] = "memory_case-0001.pickle";
  EXPECT_EQ(merge_ranks(ranks, 0.95)["memory_snapshot"], "memory_case-0001.pickle");
}

TEST(MergeRanks, WhatOneRankDidNotCheckIsNotChecked) {
  auto ranks = three_ranks();
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"], Json({{"status", "ok"}, {"text", "equal"}}));
  ranks[1].part["verify"] = {{"status", "not checked"}, {"text", "no reference"}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"],
            Json({{"status", "not checked"}, {"text", "rank 1 on n1: no reference"}}));
  for (RankPart& rank : ranks) rank.part["verify"] = ranks[1].part["verify"];
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"], Json({{"status", "not checked"}, {"text", "no reference"}}));
}

TEST(MergeRanks, WhatOneRankCheckedInPartIsCheckedInPart) {
  auto ranks = three_ranks();
  ranks[2].part["verify"] = {{"status", "partial"}, {"text", "loss alone"}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"], Json({{"status", "partial"}, {"text", "rank 2 on n2: loss alone"}}));
  ranks[1].part["verify"] = {{"status", "not checked"}, {"text", "no reference"}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"]["status"], "not checked") << "which is less";
  for (RankPart& rank : ranks)
    rank.part["verify"] = {{"status", "partial"}, {"text", "off by " + std::to_string(rank.rank)}};
  EXPECT_EQ(merge_ranks(ranks, 0.95)["verify"], Json({{"status", "partial"}, {"text", "off by 0"}}));
}

TEST(MergeRanks, RanksThatMeasuredDifferentStepsAreAFailure) {
  auto ranks = three_ranks();
  ranks[2].part = part_of({1, 2, 3}, {1, 1, 1});
  const Json merged = merge_ranks(ranks, 0.95);
  EXPECT_EQ(merged["status"], "failed");
  EXPECT_TRUE(merged["reason"].get<std::string>().starts_with("rank 0 has 4 samples of 'step' and rank 2 has 3: "));
  for (const char* figures : {"phases", "step_metrics", "rates", "drift"}) EXPECT_FALSE(merged.contains(figures));
  EXPECT_EQ(merged["by_rank"][2], Json({{"rank", 2}, {"host", "n2"}, {"status", "ok"}, {"stage", "done"}}));
  ranks = three_ranks();
  ranks[1].part["phases"]["wait"]["samples_ms"].push_back(1.0);
  EXPECT_EQ(merge_ranks(ranks, 0.95)["status"], "failed");
  ranks = three_ranks();
  ranks[1].part.erase("phases");
  EXPECT_TRUE(merge_ranks(ranks, 0.95)["reason"].get<std::string>().starts_with("2 of 3 ranks have times of a step"));
}

TEST(MergeRanks, OneRankIsUnchanged) {
  const std::vector<RankPart> one{three_ranks().front()};
  EXPECT_EQ(merge_ranks(one, 0.95).dump(), one[0].part.dump());
  std::vector<RankPart> lost = one;
  lost[0].part = {{"status", "crashed"}, {"reason", "signal 11"}};
  EXPECT_EQ(merge_failed_ranks(lost, 0), record::to_json(typed(lost)[0].result));
}

TEST(MergeRanks, RefusesPartsThatAreNotItsOwn) {
  EXPECT_THROW(merge_ranks(std::vector<RankPart>(), 0.95), std::invalid_argument);
  auto ranks = three_ranks();
  EXPECT_THROW(merge_failed_ranks(ranks, 0), std::invalid_argument);
  EXPECT_THROW(merge_failed_ranks(ranks, 3), std::invalid_argument);
  ranks[1].part["status"] = "crashed";
  EXPECT_THROW(merge_ranks(ranks, 0.95), std::invalid_argument);
}

TEST(MergeFailedRanks, SaysWhoAndWhere) {
  auto ranks = three_ranks();
  ranks[0].part = {
      {"status", "failed"}, {"reason", "ended with the others"}, {"stage", "measure"}, {"phase", "wait"}, {"step", 7}};
  ranks[1].part = {{"status", "crashed"}, {"reason", "signal 9 (killed)"}, {"stage", "measure"}, {"phase", "forward"},
                   {"step", 8},           {"log_tail", {"last words"}}};
  ranks[2].part = {{"status", "timeout"}};  // nothing else is known of it
  const Json merged = merge_failed_ranks(ranks, 1);
  EXPECT_EQ(merged["status"], "crashed");
  EXPECT_EQ(merged["rank"], 1);
  EXPECT_EQ(merged["reason"], "rank 1 on n1: signal 9 (killed)");
  EXPECT_EQ(merged["stage"], "measure");
  EXPECT_EQ(merged["phase"], "forward");
  EXPECT_EQ(merged["step"], 8);
  EXPECT_EQ(merged["log_tail"], Json::array({"last words"}));
  EXPECT_EQ(merged["by_rank"][0], Json({{"rank", 0},
                                        {"host", "n0"},
                                        {"status", "failed"},
                                        {"stage", "measure"},
                                        {"phase", "wait"},
                                        {"step", 7},
                                        {"reason", "ended with the others"}}));
  EXPECT_EQ(merged["by_rank"][2], Json({{"rank", 2}, {"host", "n2"}, {"status", "timeout"}}));
  EXPECT_FALSE(merged.contains("verify"));
  EXPECT_FALSE(merged.contains("straggler"));
}

TEST(MergeFailedRanks, NamesARankOnce) {
  auto ranks = three_ranks();
  ranks[1].part = {{"status", "timeout"}, {"reason", "rank 1 has shown no sign of life for 2m"}};
  EXPECT_EQ(merge_failed_ranks(ranks, 1)["reason"], "rank 1 has shown no sign of life for 2m");
  ranks[1].part["reason"] = "rank 12 is waited for";
  EXPECT_EQ(merge_failed_ranks(ranks, 1)["reason"], "rank 1 on n1: rank 12 is waited for");
  ranks[1].host.clear();
  EXPECT_EQ(merge_failed_ranks(ranks, 1)["reason"], "rank 1: rank 12 is waited for");
  ranks[1].part.erase("reason");
  EXPECT_EQ(merge_failed_ranks(ranks, 1)["reason"], "rank 1: ended without a reason");
}

TEST(MergeFailedRanks, AWrongResultIsInTheVerificationWithItsRank) {
  auto ranks = three_ranks();
  ranks[2].part["status"] = "wrong_result";
  ranks[2].part["reason"] = "weight 3 differs";
  ranks[2].part["verify"] = {{"status", "wrong_result"}, {"text", "weight 3 differs"}};
  ranks[2].part.erase("phases");
  const Json merged = merge_failed_ranks(ranks, 2);
  EXPECT_EQ(merged["status"], "wrong_result");
  EXPECT_EQ(merged["verify"], Json({{"status", "wrong_result"}, {"text", "rank 2 on n2: weight 3 differs"}}));
  EXPECT_FALSE(merged.contains("phases"));
}

TEST(MergeRanks, FillsTheColumnsOfRanks) {
  Json merged = merge_ranks(three_ranks(), 0.95);
  merged["ranks"] = 3;
  EXPECT_EQ(csv_text(cell_of(merged, "ranks")), "3");
  EXPECT_EQ(csv_text(cell_of(merged, "straggler.rank")), "2");
  EXPECT_EQ(csv_text(cell_of(merged, "straggler.share")), "0.5");
  EXPECT_EQ(display_text(cell_of(merged, "spread")), "0.02439");
  EXPECT_EQ(csv_text(cell_of(merged, "by_rank.step_mean_ms.min")), "20.25");
  EXPECT_EQ(csv_text(cell_of(merged, "by_rank.step_mean_ms.max")), "20.75");
}

}  // namespace
}  // namespace assay::host
