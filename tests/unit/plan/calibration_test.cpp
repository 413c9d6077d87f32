#include "plan/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::host::plan {
namespace {

// Seconds of products, attention, the rest and collectives at the roofline, and the number of operations.
Features features(double products, double attention, double other, double count) {
  return {products, attention, other, 0, count};
}

double made_of(const Features& f) { return 1.4 * f[0] + 2.5 * f[1] + 1.1 * f[2] + 3e-6 * f[4]; }

TEST(Fit, FindsWhatStepsAreMadeOf) {
  std::vector<Features> known;
  std::vector<double> seconds;
  for (const double size : {1.0, 2.0, 5.0, 11.0, 30.0})
    for (const double length : {1.0, 3.0, 8.0}) {
      known.push_back(
          features(1e-3 * size * length, 1e-4 * length * length, 4e-4 * size + 2e-4 * length, 300 + 10 * size));
      seconds.push_back(made_of(known.back()));
    }
  const Fit found = fit(known, seconds);
  EXPECT_EQ(found.cases, known.size());
  EXPECT_LT(found.largest_error, 0.05);
  const Features beyond = features(0.2, 0.02, 0.02, 700);
  EXPECT_NEAR(found.seconds(beyond) / made_of(beyond), 1, 0.05);
}

TEST(Fit, OneCaseGivesOneFactor) {
  const Fit found = fit({features(1e-3, 0, 0, 100)}, {2e-3});
  EXPECT_NEAR(found.seconds(features(1e-3, 0, 0, 100)), 2e-3, 2e-5);
  EXPECT_NEAR(found.seconds(features(4e-3, 0, 0, 100)) / 8e-3, 1, 0.1);
}

TEST(Fit, NoFactorIsBelowZero) {
  // More operations and a shorter step: no cost of an operation explains that.
  const Fit found = fit({features(1e-3, 0, 1e-3, 10), features(1e-3, 0, 0.5e-3, 5000)}, {4e-3, 1e-3});
  for (const double factor : found.factors) EXPECT_GE(factor, 0);
}

plugin::WorkloadSchema schema_of_sizes() {
  plugin::WorkloadSchema schema;
  schema.id = "w";
  plugin::ParamSpec n, size, mode;
  n.name = "n", n.default_value = std::int64_t{1};
  size.name = "size", size.type = plugin::ParamType::text, size.choices = {"small", "large"};
  size.default_value = std::string("small");
  mode.name = "mode", mode.type = plugin::ParamType::text, mode.choices = {"eager", "graph"};
  mode.default_value = std::string("eager");
  schema.params = {n, size, mode};
  schema.presets = {{"size", "large", "", "", "", "n", std::int64_t{9}}};
  return schema;
}

record::CaseRecord record_of(const std::string& mode, const std::string& size, double step_ms) {
  record::CaseRecord record;
  record.identity.workload = "w";
  record.identity.params = {{"n", std::int64_t{4}}, {"size", size}, {"mode", mode}};
  record.result.device.emplace().name = "GPU";
  record::Phase step;
  step.mean_ms = step_ms;
  record.result.phases.emplace().emplace_back("step", step);
  return record;
}

Walk walk_of(double least_s) {
  Walk walk;
  walk.state = WalkState::walked;
  walk.operations[product_kind] = {10, 0, 0, 0, least_s};
  return walk;
}

TEST(Calibration, WhatIsBesideTheStepsIsThatOfTheNearestSizes) {
  // Of an even number the larger middle one is the median.
  const std::vector<double> sizes{1, 1.1, 9, 10}, values{2, 4, 30, 50};
  EXPECT_EQ(median_of_nearest(sizes, values, 1), 4);
  EXPECT_EQ(median_of_nearest(sizes, values, 0.01), 4);
  EXPECT_EQ(median_of_nearest(sizes, values, 9), 50);
  EXPECT_EQ(median_of_nearest(sizes, values, 1000), 50);
  EXPECT_EQ(median_of_nearest({3, 9, 10}, {1, 7, 5}, 4), 1);
  EXPECT_EQ(median_of_nearest({5}, {7}, 1), 7);
}

TEST(Calibration, StandsOnCasesOfTheSameChoicesAndOtherSizes) {
  const plugin::WorkloadSchema schema = schema_of_sizes();
  std::vector<record::CaseRecord> records{record_of("eager", "small", 10), record_of("eager", "large", 20),
                                          record_of("graph", "small", 3)};
  const std::vector<EarlierCase> earlier = earlier_cases(records, schema, "GPU");
  ASSERT_EQ(earlier.size(), 3u);
  EXPECT_EQ(earlier[0].request.values.params.at("n"), Value(std::int64_t{4}));
  const Calibration calibration(schema, earlier, {walk_of(5e-3), walk_of(10e-3), walk_of(1.5e-3)});
  experiment::Case asked;
  asked.params = {{"n", std::int64_t{4}}, {"size", std::string("small")}, {"mode", std::string("eager")}};
  const auto expected = calibration.expected(asked, 1, walk_of(40e-3));
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->cases, 2u);
  EXPECT_NEAR(expected->step_s, 80e-3, 4e-3);
  EXPECT_NEAR(expected->beyond, 4, 1e-9);  // four times the largest of them
  EXPECT_FALSE(calibration.expected(asked, 2, walk_of(40e-3))) << "of one rank alone is known";
  EXPECT_EQ(calibration.why_none(asked, 2), WhyNoTime::nothing_alike);
  // Peaks that nobody states, as of this machine's CPU.
  const Calibration without(schema, earlier, {walk_of(0), walk_of(0), Walk{}});
  EXPECT_FALSE(without.expected(asked, 1, walk_of(0)));
  EXPECT_EQ(without.why_none(asked, 1), WhyNoTime::no_peaks);
  asked.params["mode"] = std::string("graph");
  EXPECT_EQ(without.why_none(asked, 1), WhyNoTime::not_planned);
}

TEST(Calibration, AParameterThatIsNewerThanTheRecordHasItsDefault) {
  plugin::WorkloadSchema schema = schema_of_sizes();
  schema.params.push_back(schema.params.front());
  schema.params.back().name = "newer";
  schema.params.back().default_value = std::int64_t{7};
  const std::vector<EarlierCase> earlier = earlier_cases({record_of("eager", "small", 10)}, schema, "GPU");
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_EQ(earlier[0].request.values.params.at("newer"), Value(std::int64_t{7}));
}

TEST(Calibration, LeavesOutOtherDevicesAndFailures) {
  const plugin::WorkloadSchema schema = schema_of_sizes();
  std::vector<record::CaseRecord> records{record_of("eager", "small", 10), record_of("eager", "small", 10),
                                          record_of("eager", "small", std::nan(""))};
  records[0].result.device->name = "another GPU";
  records[1].result.status = record::Status::oom;
  EXPECT_TRUE(earlier_cases(records, schema, "GPU").empty());
}

}  // namespace
}  // namespace assay::host::plan
