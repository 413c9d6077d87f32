// The specification as it travels to another machine and to the worker.
#include "worker/case_spec.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "experiment/settings.hpp"

namespace assay::host::run::test {
namespace {

worker::CaseSpec travelled(const worker::CaseSpec& spec) {
  return worker::case_spec_from_json(nlohmann::json::parse(to_json(spec).dump()));
}

TEST(CaseSpecText, EverySettingArrives) {
  worker::CaseSpec spec;
  experiment::Case& c = spec.values;
  c.measure.warmup = 3;
  c.measure.until = measure::StoppingRule{0.02, 0.9, 12, 345};
  c.measure.sync = false;
  c.measure.timeout = std::chrono::milliseconds(90'500);
  c.run.device = "cpu";
  c.run.ranks = 2;
  c.run.bind = "cores";
  c.run.stall_timeout = std::chrono::milliseconds(0);
  c.run.wireup_timeout = std::chrono::milliseconds(1'234);
  c.run.isolate = false;
  c.run.seed = 77;
  c.run.threads = 5;
  c.run.memory_limit_bytes = (std::uint64_t{3} << 30) + 1;
  c.profile.nvtx = false;
  c.profile.nsys = true;
  c.profile.ncu = true;
  c.profile.ncu_launches = 9;
  c.profile.nsys_trace = {"osrt", "cuda"};
  c.run.allow = {"oom"};
  c.profile.kernels = true;
  c.profile.memory_snapshot = true;
  const experiment::Case arrived = travelled(spec).values;
  EXPECT_EQ(arrived.settings(), c.settings());
  EXPECT_EQ(arrived.list_settings(), c.list_settings());
  EXPECT_EQ(arrived.profile.nsys_trace, c.profile.nsys_trace);
  EXPECT_EQ(arrived.measure.timeout, c.measure.timeout);
  EXPECT_EQ(arrived.run.memory_limit_bytes, c.run.memory_limit_bytes);
  ASSERT_TRUE(arrived.measure.until.has_value());
  EXPECT_EQ(arrived.measure.until->max_steps, 345);
  EXPECT_EQ(arrived.measure.confidence(), 0.9);
}

TEST(CaseSpecText, WhatIsToBeVerifiedArrives) {
  worker::CaseSpec spec;
  EXPECT_EQ(travelled(spec).verification.mode, "full");
  EXPECT_FALSE(travelled(spec).verification.first.has_value());
  spec.verification = {"first", true,
                       worker::FirstCase{{3, 2, "9f2c", record::Verification::partial}, {{"b", "x"}, {"a", "y"}}}};
  const worker::VerificationAsked arrived = travelled(spec).verification;
  EXPECT_EQ(arrived.mode, "first");
  EXPECT_TRUE(arrived.by_account);
  ASSERT_TRUE(arrived.first.has_value());
  EXPECT_EQ(record::text_of(arrived.first->which), "case 4, repeat 2 (9f2c)");
  EXPECT_EQ(arrived.first->which.status, record::Verification::partial);
  EXPECT_EQ(arrived.first->algorithms, spec.verification.first->algorithms);
}

TEST(CaseSpecText, AFixedNumberOfStepsArrives) {
  worker::CaseSpec spec;
  spec.values.measure.steps = 21;
  const worker::CaseSpec arrived = travelled(spec);
  EXPECT_EQ(arrived.values.settings(), spec.values.settings());
  EXPECT_FALSE(arrived.plan().until.has_value());
  EXPECT_EQ(arrived.plan().steps, 21);
  EXPECT_EQ(arrived.plan().confidence(), 0.95);
}

TEST(CaseSpecText, ParametersKeepTheirTypes) {
  worker::CaseSpec spec;
  spec.values.params = {
      {"flag", true}, {"count", std::int64_t{1}}, {"share", 1.0}, {"small", 1e-7}, {"word", std::string("1")}};
  EXPECT_EQ(travelled(spec).values.params, spec.values.params);
}

TEST(CaseSpecText, PlaceAndRankArrive) {
  worker::CaseSpec spec;
  spec.values.index = 41;
  spec.values.repeat = 3;
  spec.plugin_file = "/plugins/libdemo.so";
  spec.workload = "demo";
  spec.phase_names = {"forward"};
  spec.device_kind = "cuda";
  spec.device_ordinal = 3;
  spec.run_folder = "/runs/demo";
  spec.output_files = {"/runs/demo/x.case-0042.rank2.bin"};
  spec.ranks = {2, 4, 1, 2, 0, 3, "n2", {{"10.0.0.1", "::1"}, 99, "secret"}, "case/5/"};
  const worker::CaseSpec arrived = travelled(spec);
  EXPECT_EQ(to_json(arrived), to_json(spec));
  EXPECT_EQ(arrived.ranks.rank, 2);
  EXPECT_EQ(arrived.ranks.sharer_count, 3);
  EXPECT_EQ(arrived.ranks.service.addresses, (std::vector<std::string>{"10.0.0.1", "::1"}));
  EXPECT_EQ(arrived.ranks.prefix, "case/5/");
  EXPECT_EQ(arrived.file_stem(), "case-0042.repeat3.rank2");
  EXPECT_EQ(arrived.device_ordinal, 3);
  EXPECT_EQ(arrived.output_files, spec.output_files);
}

TEST(CaseSpecText, ASettingOfAnotherVersionIsNamed) {
  nlohmann::json text = to_json(worker::CaseSpec{});
  text["values"]["settings"]["run.of_tomorrow"] = 1;
  try {
    worker::case_spec_from_json(text);
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("run.of_tomorrow = 1"), std::string::npos) << e.what();
  }
}

TEST(CaseSpecText, AProbeIsNoCase) {
  EXPECT_EQ(worker::probe_from_json(worker::probe_to_json("auto")), "auto");
  EXPECT_FALSE(worker::probe_from_json(to_json(worker::CaseSpec{})).has_value());
}

}  // namespace
}  // namespace assay::host::run::test
