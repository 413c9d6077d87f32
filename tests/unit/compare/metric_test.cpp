#include "compare/metric.hpp"

#include "noisy_records.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

Json sample() {
  Json record = record_of({{"size", "small"}}, {10, 12, 14});
  record["phases"]["forward"] = {{"mean_ms", 3.0}, {"std_ms", 0.5}, {"n", 3}};
  record["contention"] = {{"others_share", 0.4}, {"steal_share", 0.01}, {"wait_share", 0.2}};
  record["metrics"] = {{"parameters", {{"value", 100}, {"unit", ""}, {"direction", 0}}},
                       {"bandwidth", {{"value", 50.0}, {"unit", "GB/s"}, {"direction", 1}}},
                       {"wrong_elements", {{"value", 0}, {"unit", "elements"}, {"direction", -1}}}};
  record["step_metrics"] = {{"loss", {{"unit", ""}, {"direction", -1}, {"mean", 9.2}, {"samples", {9.3, 9.1}}}}};
  record["memory"]["process_peak_mib"] = 900.0;
  record["wall_s"] = {{"setup", 0.5}};
  return record;
}

TEST(Metric, AStepHasItsSamplesAndWhatDisturbedThem) {
  const auto step = metric_of(sample(), "step");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->figure.samples, (std::vector<double>{10, 12, 14}));
  EXPECT_EQ(step->unit, "ms");
  EXPECT_EQ(step->better, Direction::lower_is_better);
  EXPECT_TRUE(step->figure.timed);
  EXPECT_NEAR(step->figure.waited_share, 0.21, 1e-12);  // waited, and the hypervisor's share
}

TEST(Metric, WhatACasesOwnThreadsWaitForOneAnotherDisturbsNothing) {
  Json record = sample();
  record["contention"]["wait_share"] = 0.75;
  record["contention"]["foreign_wait_share"] = 0.02;
  EXPECT_NEAR(metric_of(record, "step")->figure.waited_share, 0.03, 1e-12);
  EXPECT_FALSE(is_contended(metric_of(record, "step")->figure));
}

TEST(Metric, OnAGpuTheProcessorsMatterLittle) {
  Json record = sample();
  record["validity"] = {{"verdict", "contended"}, {"text", "2 processes took 40% of the processors"}};
  EXPECT_FALSE(metric_of(record, "step")->figure.shared_device);
  record["device"]["kind"] = "cuda";
  EXPECT_EQ(metric_of(record, "step")->figure.waited_share, 0);
  EXPECT_TRUE(metric_of(record, "step")->figure.shared_device);
}

TEST(Metric, APhaseWithoutSamples) {
  const auto forward = metric_of(sample(), "forward");
  ASSERT_TRUE(forward);
  EXPECT_TRUE(forward->figure.samples.empty());
  EXPECT_EQ(forward->figure.std, 0.5);
  EXPECT_EQ(forward->figure.n, 3u);
}

TEST(Metric, RatesByTheirItems) {
  for (const char* name : {"tokens_per_s", "items_per_s"}) {
    const auto rate = metric_of(sample(), name);
    ASSERT_TRUE(rate) << name;
    EXPECT_EQ(rate->unit, "tokens/s");
    EXPECT_EQ(rate->better, Direction::higher_is_better);
    EXPECT_NEAR(*rate->figure.scale, 2048e3, 1e-6);
  }
  EXPECT_FALSE(metric_of(sample(), "samples_per_s"));
}

TEST(Metric, MemoryIsAccountedAndThatOfTheProcessMeasured) {
  const auto memory = metric_of(sample(), "memory");
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->figure.exact);
  EXPECT_EQ(memory->figure.mean, 790.5);
  EXPECT_EQ(memory->unit, "MiB");
  Json record = sample();
  record["memory"]["peak_total_mib"] = 0.0;  // the workload accounts for none
  const auto process = metric_of(record, "memory");
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->figure.exact);
  EXPECT_EQ(process->figure.mean, 900);
}

// The first run on a machine tries algorithms, on its own memory; the next one takes what was chosen.
TEST(Metric, MemoryIsThatOfTheStepsWhateverSetUpTook) {
  Json tried = sample();
  tried["memory"]["step_peak_mib"] = {{"mean", 700.0}, {"min", 700.0}, {"max", 700.0}};
  Json chosen = tried;
  tried["memory"]["peak_total_mib"] = 1300.0;
  const auto first = metric_of(tried, "memory"), second = metric_of(chosen, "memory");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->figure.mean, 700);
  EXPECT_EQ(second->figure.mean, 700);
}

// Figures of another program have the peak of a whole case alone: no step's peak is compared with it.
TEST(Metric, MemoryIsOneQuantityForAllRecords) {
  Json with_steps = sample();
  with_steps["memory"]["step_peak_mib"] = {{"mean", 700.0}, {"min", 700.0}, {"max", 700.0}};
  const record::CaseRecord steps = with_steps, whole = sample();
  EXPECT_EQ(name_for_all({&steps, &steps}, "memory"), "memory");
  EXPECT_EQ(name_for_all({&steps, &whole}, "memory"), "memory.peak_mib");
  EXPECT_EQ(name_for_all({&steps, &whole}, "step"), "step");
}

TEST(Metric, OfTheWorkload) {
  EXPECT_EQ(metric_of(sample(), "bandwidth")->better, Direction::higher_is_better);
  EXPECT_FALSE(metric_of(sample(), "bandwidth")->figure.exact);
  EXPECT_TRUE(metric_of(sample(), "parameters")->figure.exact);
  EXPECT_EQ(metric_of(sample(), "loss")->figure.samples.size(), 2u);
  EXPECT_EQ(metric_of(sample(), "wall_s.setup")->unit, "s");
}

TEST(Metric, WhatIsNotThereOrNotPositiveHasNoRatio) {
  EXPECT_FALSE(metric_of(sample(), "backward"));
  EXPECT_FALSE(metric_of(sample(), "size"));
  EXPECT_FALSE(metric_of(sample(), "wrong_elements"));
  Json record = sample();
  record["phases"]["step"]["samples_ms"] = {1.0, 0.0};
  EXPECT_FALSE(metric_of(record, "step"));
}

TEST(Metric, Words) {
  const auto word = [](Outcome outcome, const char* name) {
    return verdict_word(outcome, name, *metric_of(sample(), name));
  };
  EXPECT_EQ(word(Outcome::higher, "step"), "slower");
  EXPECT_EQ(word(Outcome::lower, "step"), "faster");
  EXPECT_EQ(word(Outcome::higher, "tokens_per_s"), "faster");
  EXPECT_EQ(word(Outcome::lower, "tokens_per_s"), "slower");
  EXPECT_EQ(word(Outcome::higher, "memory"), "more");
  EXPECT_EQ(word(Outcome::lower, "bandwidth"), "worse");
  EXPECT_EQ(word(Outcome::higher, "parameters"), "higher");
  EXPECT_EQ(word(Outcome::same, "step"), "same");
  EXPECT_EQ(word(Outcome::cannot_tell, "memory"), "cannot tell");
}

TEST(Metric, Worse) {
  EXPECT_TRUE(is_worse(Outcome::higher, Direction::lower_is_better));
  EXPECT_TRUE(is_worse(Outcome::lower, Direction::higher_is_better));
  EXPECT_FALSE(is_worse(Outcome::lower, Direction::lower_is_better));
  EXPECT_FALSE(is_worse(Outcome::higher, Direction::neither));
  EXPECT_FALSE(is_worse(Outcome::cannot_tell, Direction::lower_is_better));
}

TEST(Metric, AWordIsNoFigure) {
  Json record = sample();
  record["metrics"]["logits_dtype"] = {{"value", 1}, {"word", "bf16"}, {"unit", ""}, {"direction", 0}};
  record["verify"] = {{"status", "ok"}, {"text", ""}};
  EXPECT_FALSE(metric_of(record, "logits_dtype"));
  EXPECT_EQ(word_of(record, "logits_dtype"), "bf16");
  EXPECT_EQ(word_of(record, "verify"), "ok");
  for (const char* name : {"step", "parameters", "wrong_elements", "memory", "nothing", "reason", "size"})
    EXPECT_FALSE(word_of(record, name)) << name;
}

}  // namespace
}  // namespace assay::host::compare
