#include "forecast/step_forecast.hpp"

#include "common/text_format.hpp"
#include "forecast/forecast_check.hpp"
#include "forecast/forecast_report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace assay::host::forecast {
namespace {

const Wire ring{.algorithm = Algorithm::ring, .latency_s = 10e-6, .seconds_per_byte = 1 / 100e9};
const Wire tree{.algorithm = Algorithm::tree, .latency_s = 10e-6, .seconds_per_byte = 1 / 100e9};

// 50 ms of computing; `collectives` messages of 4e9 bytes in all.
MeasuredStep step_on(int ranks, double collectives, const Wire& wire) {
  MeasuredStep s{.ranks = ranks};
  const double bytes = 4e9, one_s = seconds_of(wire, Collective::all_reduce, bytes / collectives, ranks);
  s.exchanges = {{.messages = {{Collective::all_reduce, collectives, bytes}},
                  .busy_s = collectives * one_s,
                  .exposed_s = collectives * one_s}};
  s.silent_s = 0.05;
  s.step_s = 0.05 + s.exposed_s();
  s.items = 1000.0 * ranks;
  return s;
}
StepFamily family_of(std::vector<MeasuredStep> steps) {
  return {.label = "ddp", .item_unit = "tokens", .steps = steps};
}

TEST(StepForecast, AStepThatWaitsForItsCollectivesIsThatOfTheModel) {
  const StepFamily family = family_of({step_on(1, 100, ring), step_on(2, 100, ring), step_on(64, 100, ring)});
  const auto all = forecasts(family, {1, 2}, {1, 2, 64}, {.wires = {ring}});
  ASSERT_EQ(all.size(), 3u);
  for (const StepForecast& o : all) {
    ASSERT_TRUE(o.measured_s);
    EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-12) << o.ranks;
    EXPECT_NEAR(o.efficiency, 0.05 / o.step_s, 1e-12);
    EXPECT_NEAR(o.items_per_s, 1000.0 * o.ranks / o.step_s, 1e-6);
  }
  EXPECT_EQ(all[0].communication_s, 0);
  EXPECT_FALSE(forecasts(family, {1, 2}, {8}, {.wires = {ring}})[0].measured_s);
}

// One rank does not say how its collectives run beside others' work.
TEST(StepForecast, SeveralRanksAreExpectedFromTwoOrMore) {
  StepFamily family = family_of({step_on(1, 100, ring), step_on(4, 100, ring)});
  EXPECT_EQ(basis_of(family, {1, 4}, 1).ranks, 1);
  EXPECT_EQ(basis_of(family, {1, 4}, 2).ranks, 4);
  EXPECT_EQ(basis_of(family, {1, 4}, 64).ranks, 4);
  EXPECT_EQ(basis_of(family, {4}, 1).ranks, 4);
  const auto all = forecasts(family, {1, 4}, {1, 2, 4}, {.wires = {ring}});
  EXPECT_TRUE(all[0].is_basis && all[2].is_basis);
  EXPECT_FALSE(all[1].is_basis);
}

TEST(StepForecast, TheFasterAlgorithmIsTaken) {
  const StepFamily small = family_of({step_on(2, 100000, ring)});
  EXPECT_EQ(forecasts(small, {2}, {64}, {.wires = {ring, tree}})[0].algorithm, Algorithm::tree);
  Wire slow_tree = tree;
  slow_tree.seconds_per_byte *= 2;
  const StepFamily large = family_of({step_on(2, 1, ring)});
  EXPECT_EQ(forecasts(large, {2}, {64}, {.wires = {ring, slow_tree}})[0].algorithm, Algorithm::ring);
}

// Ten buckets, of which the last one is ready when the backward ends.
TEST(StepForecast, WhatTheBackwardHidesIsNotWaitedFor) {
  MeasuredStep s = step_on(2, 10, ring);
  Exchange& e = s.exchanges.front();
  e.overlaps = true;
  e.beside_s = 0.03;
  *e.busy_s *= 1.25;  // beside the backward
  e.exposed_s = 0;
  const double exposed_then_s = *e.busy_s - 0.03 * 0.9;
  s.step_s = 0.05 + exposed_then_s + 0.006;  // slowed down by 6 ms
  const StepFamily family = family_of({s});
  const double modelled_s =
      10 * seconds_of(ring, Collective::all_reduce, 4e8, 8) + 2.5 * seconds_of(ring, Collective::all_reduce, 4e8, 2);
  const StepForecast o = forecasts(family, {2}, {8}, {.wires = {ring}})[0];
  EXPECT_NEAR(o.communication_s, modelled_s, 1e-12);
  EXPECT_NEAR(o.exposed_s, modelled_s - 0.03 * 0.9, 1e-12);
  EXPECT_NEAR(o.slowed_s, 0.006 / (*e.busy_s - exposed_then_s) * (modelled_s - o.exposed_s), 1e-12);
  EXPECT_NEAR(forecasts(family, {2}, {2}, {.wires = {ring}})[0].step_s, s.step_s, 1e-12) << "the basis is itself";
  EXPECT_NEAR(o.step_s, 0.05 + o.exposed_s + o.slowed_s, 1e-12);
  // Where the backward has room for all of them, the last one is left.
  MeasuredStep roomy = s;
  roomy.exchanges.front().beside_s = 1;
  EXPECT_NEAR(forecasts(family_of({roomy}), {2}, {8}, {.wires = {ring}})[0].exposed_s, modelled_s / 10, 1e-12);
}

// 30 messages of 0.1 ms each, of which 20 have nothing beside them: 2 of 3 ms are waited for where the products beside
// the others take long enough, and more where they do not.
TEST(StepForecast, WhatRunsBesideTheNextChunkIsNotWaitedFor) {
  const Wire wire{.algorithm = Algorithm::ring, .latency_s = 100e-6};  // one step of a gather between two ranks
  MeasuredStep s{.ranks = 2, .step_s = 0.052, .silent_s = 0.05, .computation = Computation::shared, .items = 1000};
  s.exchanges = {{.messages = {{Collective::all_gather, 30, 30}},
                  .busy_s = 0.003,
                  .exposed_s = 0.002,
                  .overlaps = true,
                  .beside_s = 0.036,
                  .unhidden = 20}};
  const auto on_two = [&](const MeasuredStep& step) {
    return forecasts(family_of({step}), {2}, {2}, {.wires = {wire}})[0];
  };
  EXPECT_NEAR(on_two(s).communication_s, 0.003, 1e-12);
  EXPECT_NEAR(on_two(s).exposed_s, 0.002, 1e-12);
  EXPECT_NEAR(on_two(s).slowed_s, 0, 1e-12);
  // Four ranks: three steps a gather, 9 ms, and half of the products.
  const StepForecast four = forecasts(family_of({s}), {2}, {4}, {.wires = {wire}})[0];
  EXPECT_NEAR(four.communication_s, 0.009, 1e-12);
  EXPECT_NEAR(four.exposed_s, 0.006, 1e-12);
  EXPECT_NEAR(four.step_s, 0.025 + 0.006, 1e-12);
  s.exchanges[0].beside_s = 0.0015;
  EXPECT_NEAR(on_two(s).exposed_s, 0.0025, 1e-12) << "0.5 ms of products beside 1 ms of messages";
}

TEST(StepForecast, TheNetworkCostsWhatItCostsBeyondAMachine) {
  const StepFamily family = family_of({step_on(2, 10, ring)});
  const Network network{.ranks_per_machine = 8, .latency_s = 50e-6, .seconds_per_byte = 1 / 5e9};
  const auto all = forecasts(family, {2}, {8, 32}, {.wires = {ring}, .network = network});
  EXPECT_NEAR(all[0].step_s, step_on(8, 10, ring).step_s, 1e-12);
  // Of 62 steps 6 go from one of four machines to the next; bytes leave a machine over its eight shares.
  const double message_s = 56 * 10e-6 + 6 * 50e-6 + 4e8 * 62 / 32 / (8 * 5e9);
  EXPECT_NEAR(all[1].communication_s, 10 * message_s, 1e-9);
  // A network that is faster than the links within a machine speeds nothing up.
  const Network fast{.ranks_per_machine = 8, .latency_s = 1e-6, .seconds_per_byte = 1 / 100e9};
  EXPECT_NEAR(forecasts(family, {2}, {32}, {.wires = {ring}, .network = fast})[0].step_s, step_on(32, 10, ring).step_s,
              1e-9);
}

// Three machines of 8 GPUs with 12.5 GB/s of network each: nccl-tests measures about 85 GB/s of bus bandwidth there.
TEST(StepForecast, AMachinesWholeNetworkCarriesAMessage) {
  StepFamily family = family_of({step_on(2, 1, ring)});
  family.steps[0].exchanges[0].messages[0].bytes = 8e9;
  const Network network{.ranks_per_machine = 8, .latency_s = 5e-6, .seconds_per_byte = 1 / 12.5e9};
  const Wire nvlink{.algorithm = Algorithm::ring, .latency_s = 5e-6, .seconds_per_byte = 1 / 230e9};
  const double s = forecasts(family, {2}, {24}, {.wires = {nvlink}, .network = network})[0].communication_s;
  EXPECT_NEAR(8e9 * 2 * 23 / 24 / s * 1e-9, 92, 10);
}

// Gloo sends small ones whole to every rank, so that the mean of small and large ones stands for neither.
TEST(StepForecast, SmallAndLargeCollectivesCountApart) {
  const Wire direct{.algorithm = Algorithm::direct, .latency_s = 1e-3, .message_s = 1e-5, .seconds_per_byte = 1e-6};
  MeasuredStep s{.ranks = 2, .silent_s = 0.01};
  const double then_s = 3 * (1e-3 + 1e-5 + 1152e-6) + 2 * (2e-3 + 3e-5 + 32456e-6);
  s.exchanges = {{.messages = {{Collective::all_reduce, 3, 3000}, {Collective::all_reduce, 2, 64000}},
                  .busy_s = then_s,
                  .exposed_s = then_s}};
  s.step_s = 0.01 + then_s;
  s.machines = 2, s.ranks_at_full_speed = 1;
  const StepForecast o = forecasts(family_of({s}), {2}, {64}, {.wires = {direct}})[0];
  const double small_s = 1e-3 + 63 * (1e-5 + 1152e-6), large_s = 2e-3 + 189 * (1e-5 + 152e-6) + 63e-3;
  EXPECT_NEAR(o.communication_s, 3 * small_s + 2 * large_s, 1e-12);
  EXPECT_NEAR(o.step_s, 0.01 + o.communication_s, 1e-12) << "each rank has a machine of its own, as the two had";
  EXPECT_EQ(o.algorithm, Algorithm::direct);
}

TEST(StepForecast, DirectMessagesCrossTheNetworkAtOnce) {
  const Wire loopback{.algorithm = Algorithm::direct, .message_s = 1e-5, .seconds_per_byte = 1e-9};
  MeasuredStep s{.ranks = 2, .silent_s = 0.05};
  const double then_s = seconds_of(loopback, Collective::all_reduce, 1e6, 2);
  s.exchanges = {{.messages = {{Collective::all_reduce, 1, 1e6}}, .busy_s = then_s, .exposed_s = then_s}};
  s.step_s = 0.05 + then_s;
  const auto message_s = [&](int ranks_per_machine) {
    const Network network{ranks_per_machine, 20e-3, 4e-6};
    return forecasts(family_of({s}), {2}, {64}, {.wires = {loopback}, .network = network})[0].communication_s;
  };
  const double sent = 2 * 63e6 / 64 + 189 * 152;
  EXPECT_NEAR(message_s(1), 2 * 20e-3 + 189e-5 + 4e-6 * sent, 1e-12);
  EXPECT_NEAR(message_s(8), 2 * 20e-3 + 189e-5 + 4e-6 * sent * 56 / 63, 1e-12);
  EXPECT_NEAR(message_s(64), 189e-5 + 1e-9 * sent, 1e-12) << "all on one machine";
}

// Collectives that alone would take four times the step; a step that waits longer than it lasts.
TEST(StepForecast, RecordsThatContradictEachOtherAreNamed) {
  Wire slow = ring;
  slow.seconds_per_byte *= 20;
  MeasuredStep s = step_on(2, 10, ring);
  s.exchanges[0].overlaps = true, s.exchanges[0].beside_s = 0.5;  // whatever hides, it grows with the ranks
  const StepFamily family = family_of({s});
  EXPECT_EQ(contradiction_in(family, {2}, {8}, {.wires = {ring}}), "");
  StepFamily waiting = family_of({step_on(2, 10, ring)});
  EXPECT_EQ(
      contradiction_in(waiting, {2}, {8}, {.wires = {slow}}),
      "the records contradict each other on 2 ranks: a step took 90.2 ms, but is said to have 50 ms of computing "
      "(its step without communication) and 800.2 ms of waiting for 10 collectives (as messages cost on its link)");
  waiting.steps[0].silent_s.reset();
  waiting.steps[0].exchanges[0].exposed_s = 0.2;
  EXPECT_EQ(
      contradiction_in(waiting, {2}, {8}, {.wires = {ring}}),
      "its records on 2 ranks say that a step takes 90.2 ms and waits 200 ms for collectives, which leaves no time "
      "to compute");
}

TEST(StepForecast, SaysWhatItTakesOfCollectivesBesideTheBackwardAndOfParameters) {
  MeasuredStep s = step_on(2, 10, ring);
  s.exchanges[0].overlaps = true;
  StepFamily family = family_of({s});
  family.taken_to_agree = {"last_bucket_mb=0"};
  FamilyForecast one{.family = &family, .from = {2}, .assumptions = {.wires = {ring}}};
  one.forecasts = forecasts(family, one.from, {8}, one.assumptions);
  const std::string text = text_of({one}, {}, 1000);
  EXPECT_NE(text.find("have equal sizes"), std::string::npos) << text;
  EXPECT_NE(text.find("agree with those that do: last_bucket_mb=0\n"), std::string::npos) << text;
}

// A step that took less than the model says, with collectives that are hidden: carried on, it would be below 0.
TEST(StepForecast, NoStepIsShorterThanItsComputation) {
  MeasuredStep s = step_on(2, 100, ring);
  s.exchanges[0].overlaps = true, s.exchanges[0].beside_s = 1;
  s.step_s = 0.04;  // of 50 ms without communication
  const StepForecast o = forecasts(family_of({s}), {2}, {128}, {.wires = {ring}})[0];
  EXPECT_GE(o.step_s, o.compute_s);
  EXPECT_NEAR(forecasts(family_of({s}), {2}, {2}, {.wires = {ring}})[0].step_s, 0.04, 1e-12) << "as it was measured";
}

TEST(StepForecast, TheTextFitsANarrowTerminal) {
  const StepFamily family = family_of({step_on(2, 10, ring)});
  const Network network{.ranks_per_machine = 8, .latency_s = 50e-6, .seconds_per_byte = 1 / 5e9};
  const Wire direct{
      .algorithm = Algorithm::direct, .message_s = 1e-5, .seconds_per_byte = 1 / 100e9, .has_latency = true};
  for (const Wire& wire : {ring, direct}) {
    FamilyForecast one{.family = &family, .from = {2}, .assumptions = {.wires = {wire}, .network = network}};
    one.forecasts = forecasts(family, one.from, {8, 64, 4096}, one.assumptions);
    const std::string text = text_of({one}, {{Link{"NVIDIA H200", "nccl"}, {wire}}}, 80);
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(display_width(text.substr(begin, text.find('\n', begin) - begin)), 80u) << text;
    // A ring crosses by every rank's share; who sends directly has its own.
    const bool is_direct = wire.algorithm == Algorithm::direct;
    EXPECT_EQ(text.find("over its own share") != std::string::npos, is_direct) << text;
    EXPECT_EQ(text.find("over the shares of all 8 ranks") != std::string::npos, !is_direct) << text;
  }
}

TEST(StepForecast, TheTextCountsOneMeasurementAsOne) {
  const StepFamily family = family_of({step_on(2, 10, ring)});
  FamilyForecast one{.family = &family, .from = {2}, .assumptions = {.wires = {ring}}};
  one.forecasts = forecasts(family, one.from, {8}, one.assumptions);
  for (const auto& [points, words] : {std::pair(1U, "; 1 measurement, "), std::pair(2U, "; 2 measurements, ")}) {
    Wire wire = ring;
    wire.points = points;
    const std::string text = text_of({one}, {{Link{"NVIDIA H200", "nccl"}, {wire}}}, 1000);
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(StepForecast, RanksThatShareProcessorsTakeTurns) {
  StepFamily family = family_of({step_on(1, 10, ring), step_on(2, 10, ring)});
  family.steps[0].ranks_at_full_speed = 1;  // all threads are its own
  family.steps[1].ranks_at_full_speed = 2;
  const auto all = forecasts(family, {1, 2}, {2, 4}, {.wires = {ring}});
  EXPECT_NEAR(all[0].step_s, step_on(2, 10, ring).step_s, 1e-12);
  EXPECT_NEAR(all[1].compute_s, 0.1, 1e-12);
  EXPECT_NEAR(all[1].communication_s, 2 * step_on(4, 10, ring).exposed_s(), 1e-12);
}

// A graph says how long its step takes and how long without communication, and of its collectives the number and sizes.
TEST(StepForecast, CollectivesOfAGraphTakeWhatTheyTakeAlone) {
  const double two_s = 100 * seconds_of(ring, Collective::all_reduce, 4e7, 2),
               four_s = 100 * seconds_of(ring, Collective::all_reduce, 4e7, 4);
  MeasuredStep waiting = step_on(2, 100, ring);
  waiting.exchanges[0].busy_s.reset(), waiting.exchanges[0].exposed_s.reset();
  EXPECT_FALSE(waiting.is_timed());
  const auto on_four = [&](const MeasuredStep& s) { return forecasts(family_of({s}), {2}, {4}, {.wires = {ring}})[0]; };
  EXPECT_NEAR(on_four(waiting).step_s, 0.05 + four_s, 1e-12);
  MeasuredStep late = waiting;
  late.step_s += 0.003;
  EXPECT_NEAR(on_four(late).step_s, 0.05 + four_s + 0.003, 1e-12) << "what ranks wait for one another stays";
  MeasuredStep hiding = waiting;  // half of it is hidden by something that the model does not know
  hiding.step_s = 0.05 + two_s / 2;
  EXPECT_NEAR(on_four(hiding).step_s, 0.05 + four_s / 2, 1e-12) << "a gain changes with the waiting";
  MeasuredStep beside = waiting;
  beside.exchanges[0].overlaps = true, beside.exchanges[0].beside_s = 1;
  beside.step_s = 0.05 + two_s / 100 + 0.002;
  const StepForecast o = on_four(beside);
  EXPECT_NEAR(o.exposed_s, four_s / 100, 1e-12) << "the last of them";
  EXPECT_NEAR(o.slowed_s, 0.002 * four_s / two_s, 1e-12);
}

// 40 ms that each rank computes, and 80 ms of one batch.
TEST(StepForecast, WhatTheRanksShareIsSeenOnTwoNumbersOfRanks) {
  const auto split = [](int ranks) {
    MeasuredStep s = step_on(ranks, 100, ring);
    if (ranks == 1) s.exchanges.clear(), s.silent_s.reset();
    const double exposed_s = s.exposed_s();
    s.step_s = 0.04 + 0.08 / ranks + exposed_s;
    if (ranks > 1) s.silent_s = s.step_s - exposed_s;
    s.computation = Computation::shared;
    s.items = 1000;
    return s;
  };
  const StepFamily family = family_of({split(1), split(2), split(4), split(8)});
  for (const StepForecast& o : forecasts(family, {1, 2}, {1, 2, 4, 8}, {.wires = {ring}})) {
    EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-9) << o.ranks;
    EXPECT_NEAR(o.items_per_s, 1000 / o.step_s, 1e-6) << "all ranks have one batch";
    EXPECT_NEAR(o.efficiency, 0.12 / o.step_s / o.ranks, 1e-9);
  }
  const StepForecast of_two = forecasts(family, {2}, {4}, {.wires = {ring}})[0];
  EXPECT_NEAR(of_two.compute_s, 0.08 / 2, 1e-12) << "of one number of ranks all of it is taken to be shared";
  StepFamily update = family;
  for (MeasuredStep& s : update.steps) s.computation = Computation::partly;
  EXPECT_NEAR(forecasts(update, {2}, {4}, {.wires = {ring}})[0].compute_s, 0.08, 1e-12) << "or none";
  EXPECT_NEAR(forecasts(update, {1, 2}, {4}, {.wires = {ring}})[0].compute_s, 0.06, 1e-12);
  for (MeasuredStep& s : update.steps) s.computation = Computation::same;
  EXPECT_NEAR(forecasts(update, {1, 2}, {4}, {.wires = {ring}})[0].compute_s, 0.08, 1e-12);
  // A step that takes longer on two ranks than on one shares nothing.
  StepFamily growing = family_of({split(1), split(2)});
  growing.steps[1].silent_s = 0.15;
  EXPECT_EQ(scaling_of(growing, {1, 2}).shared, 0);
}

TEST(StepForecast, TheBusiestRankOfExpertsDecides) {
  // The largest of 2, 4 and 8 normal numbers is 0.5642, 1.0294 and 1.4236 standard deviations above their mean.
  EXPECT_NEAR(imbalance_on(4, 1.1, 2), 1 + 0.1 * std::sqrt(2.0) * 1.02938 / 0.56419, 1e-5);
  EXPECT_NEAR(imbalance_on(8, 1.1, 4), 1 + 0.1 * std::sqrt(2.0) * 1.42360 / 1.02938, 1e-5);
  EXPECT_EQ(imbalance_on(1, 1.1, 2), 1);
  EXPECT_NEAR(imbalance_on(2, 1.1, 2), 1.1, 1e-12);

  const double bytes = 1e9, then_s = 20 * seconds_of(ring, Collective::all_to_all, 1.1 * bytes / 20, 2);
  MeasuredStep s{.ranks = 2, .step_s = 0.05 + then_s, .silent_s = 0.05};
  s.exchanges = {{.messages = {{Collective::all_to_all, 20, bytes}},
                  .busy_s = then_s,
                  .exposed_s = then_s,
                  .grows_with_imbalance = true}};
  s.computation = Computation::partly;
  s.experts = ExpertLoads{.imbalance = 1.1, .share_of_compute = 0.5, .experts = 8};
  const StepForecast o = forecasts(family_of({s}), {2}, {4}, {.wires = {ring}})[0];
  const double imbalance = imbalance_on(4, 1.1, 2);
  EXPECT_NEAR(o.communication_s, 20 * seconds_of(ring, Collective::all_to_all, imbalance * bytes / 20, 4), 1e-12);
  EXPECT_NEAR(o.compute_s, 0.05 * (1 + 0.5 * (imbalance - 1)) / (1 + 0.5 * 0.1), 1e-12);
  EXPECT_EQ(why_impossible(s, 16), "8 experts of a layer cannot be shared out evenly over 16 ranks");
  EXPECT_EQ(why_impossible(s, 3), "8 experts of a layer cannot be shared out evenly over 3 ranks");
  EXPECT_EQ(why_impossible(s, 8), "");
  // Where some of the ranks are too many, the others are forecast.
  const StepFamily family = family_of({s});
  const Wires wires{{Link{}, {ring}}};
  const Answer some = forecast_of(family, {.ranks = {4, 16}}, wires);
  ASSERT_TRUE(some.forecast);
  EXPECT_EQ(some.forecast->forecasts.size(), 1u);
  EXPECT_EQ(some.left_out, std::vector<std::string>{"ddp: " + why_impossible(s, 16)});
  EXPECT_FALSE(forecast_of(family, {.ranks = {16}}, wires).forecast);
}

// 64 ms of one batch in 8 micro-batches, a quarter of it the update.
TEST(StepForecast, APipelineFillsAndEmpties) {
  const auto stages = [](int ranks, double virtual_stages) {
    const double messages = 2.0 * (ranks - 1);
    const double sends_s = messages * seconds_of(ring, Collective::send_receive, 1e6, ranks);
    MeasuredStep s{.ranks = ranks, .silent_s = 0.064 / ranks};
    s.step_s = *s.silent_s * (1 + 0.75 * (ranks - 1) / (8 * virtual_stages)) + sends_s;
    if (ranks > 1)
      s.exchanges = {{.messages = {{Collective::send_receive, messages, messages * 1e6}}, .grows_with_stages = true}};
    s.computation = Computation::shared;
    s.pipeline = PipelineShape{
        .micro_batches = 8, .virtual_stages = virtual_stages, .layers = 16, .share_of_micro_batches = 0.75};
    return s;
  };
  for (const double v : {1.0, 2.0}) {
    const StepFamily family = family_of({stages(1, v), stages(2, v), stages(4, v), stages(8, v)});
    for (const StepForecast& o : forecasts(family, {1, 2}, {4, 8}, {.wires = {ring}})) {
      EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-9) << o.ranks << " ranks, " << v << " virtual stages";
      EXPECT_NEAR(o.bubble_s, o.compute_s * 0.75 * (o.ranks - 1) / (8 * v), 1e-12);
    }
  }
  EXPECT_EQ(why_impossible(stages(2, 2), 16),
            "16 layers are fewer than the 32 stages of 16 ranks with virtual_stages = 2");
  EXPECT_EQ(why_impossible(stages(2, 1), 32),
            "16 layers are fewer than the 32 stages of 32 ranks with virtual_stages = 1");
  EXPECT_EQ(why_impossible(stages(2, 2), 8), "");
  MeasuredStep one_layer = stages(2, 1);
  one_layer.pipeline->layers = 1;
  EXPECT_EQ(why_impossible(one_layer, 2), "1 layer is fewer than the 2 stages of 2 ranks with virtual_stages = 1");
  // The order of one stage a rank takes any number of micro-batches.
  EXPECT_EQ(why_impossible(stages(2, 2), 3),
            "the interleaved order of virtual_stages = 2 takes micro-batches in groups of the 3 ranks, and "
            "accumulation_steps is 8");
  EXPECT_EQ(why_impossible(stages(2, 1), 3), "");
  EXPECT_EQ(why_impossible(stages(2, 2), 1), "");
  // A record of one rank has no stages, and the table still shows the bubble.
  StepFamily family = family_of({stages(1, 1), stages(2, 1)});
  family.steps.front().pipeline.reset();
  const Wires wires{{Link{}, {ring}}};
  const Answer answer = forecast_of(family, {.ranks = {4}}, wires);
  ASSERT_TRUE(answer.forecast);
  EXPECT_NE(text_of({*answer.forecast}, wires, 1000).find("bubble_ms"), std::string::npos);
}

// 13 layers and a head of one: 7 and 7 on two ranks, 4, 4, 3 and 3 on four, 2 on six of eight.
TEST(StepForecast, APipelineWaitsForTheRankWithMostWork) {
  PipelineShape shape{.micro_batches = 8, .layers = 13, .share_of_micro_batches = 1, .head_layers = 1};
  EXPECT_DOUBLE_EQ(stage_imbalance_on(1, shape), 1);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(2, shape), 1);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(4, shape), 4 * 4.0 / 14);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(8, shape), 2 * 8.0 / 14);
  const auto on = [&](int ranks) {
    const double most = 0.064 / ranks * stage_imbalance_on(ranks, shape), sum = 0.064;
    MeasuredStep s{.ranks = ranks, .step_s = most + (sum - most) / 8, .silent_s = most};
    s.computation = Computation::shared;
    s.pipeline = shape;
    return s;
  };
  const StepFamily family = family_of({on(2), on(4), on(8)});
  for (const StepForecast& o : forecasts(family, {2}, {4, 8}, {.wires = {ring}}))
    EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-9) << o.ranks << " ranks";
  for (const StepForecast& o : forecasts(family, {2, 4}, {8}, {.wires = {ring}}))
    EXPECT_NEAR(o.step_s / *o.measured_s, 1, 1e-9) << o.ranks << " ranks";
  // As pipeline_parallel divides them (tests/unit/models/decoder_pipeline_test.cpp).
  EXPECT_DOUBLE_EQ(stage_imbalance_on(2, {.virtual_stages = 2, .layers = 6, .head_layers = 1.2}), 4 * 2 / 7.2);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(3, {.virtual_stages = 2, .layers = 11, .head_layers = 1.5}), 4.5 * 3 / 12.5);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(2, {.layers = 48, .head_layers = 2, .by_work = false}), 26 * 2 / 50.0);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(3, {.layers = 7, .head_layers = 0.5, .by_work = false}), 3 * 3 / 7.5);
  EXPECT_DOUBLE_EQ(stage_imbalance_on(4, {.layers = 13}), 1) << "an older record";
}

TEST(StepForecast, ACheckNamesTheRecordsThatItTakes) {
  StepFamily family = family_of({step_on(2, 1, ring), step_on(4, 1, ring)});
  for (MeasuredStep& step : family.steps) step.exchanges.clear();
  const auto why = [&](const std::set<int>& allowed) {
    const Check check = check_of({}, {family}, allowed);
    return check.left_out.size() == 1 ? *check.left_out.begin() : "";
  };
  EXPECT_NE(why({}).find("(of those on fewer than 4 ranks); expected all_reduce"), std::string::npos) << why({});
  EXPECT_NE(why({2}).find("(of those on the 2 ranks of --from-ranks); expected all_reduce"), std::string::npos);
}

TEST(StepForecast, OneRankWithoutExpertParallelNeedsBothSettings) {
  StepFamily family = family_of({step_on(1, 1, ring)});
  const auto why = [&] { return forecast_of(family, {.ranks = {8}}, {}).left_out.at(0); };
  EXPECT_TRUE(why().ends_with("once more with --set run.ranks=2")) << why();
  family.params = {{"expert_parallel", false}};
  EXPECT_TRUE(why().ends_with("once more with --set run.ranks=2 --set expert_parallel=true")) << why();
}

}  // namespace
}  // namespace assay::host::forecast
