// What a page holds of one case.
#include "report/case_data.hpp"

#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

record::CaseRecord read(const host::Json& json) { return json.get<record::CaseRecord>(); }

Json shown(const host::Json& json, std::size_t samples = 100) {
  SharedNames names;
  return case_json(read(json), samples, names);
}

TEST(CaseData, SaysHowTheCaseEnded) {
  const Json ok = shown(ok_record());
  EXPECT_EQ(ok["case"], 1);
  EXPECT_EQ(ok["status"], "ok");
  EXPECT_EQ(ok["verify"], "ok");
  EXPECT_FALSE(ok.contains("failure"));
  EXPECT_EQ(ok["axes"], Json::parse(R"([["size", "small"], ["measure.warmup", "5"]])"));
}

TEST(CaseData, AFailureHasItsReasonPlaceAndLog) {
  host::Json crashed = ok_record();
  crashed.erase("phases");
  crashed["status"] = "crashed";
  crashed["reason"] = "signal 11";
  crashed["stage"] = "measure";
  crashed["phase"] = "backward";
  crashed["step"] = 7;
  crashed["rank"] = 1;
  crashed["log_tail"] = {"first", "</script><script>alert(1)</script>"};
  const Json failure = shown(crashed)["failure"];
  EXPECT_EQ(failure["reason"], "signal 11");
  EXPECT_EQ(failure["where"], Json::parse(R"(["stage measure", "phase backward", "step 8", "rank 1"])"));
  EXPECT_EQ(failure["log"][1], "</script><script>alert(1)</script>");
  crashed["reason"] = "";
  EXPECT_EQ(shown(crashed)["failure"]["reason"], "no reason was given");
}

TEST(CaseData, StepsAreThinnedAndTheirSpreadIsOfAll) {
  host::Json record = ok_record();
  host::Json samples = host::Json::array();
  for (int i = 0; i < 50; ++i) samples.push_back(i == 30 ? 9.0 : 1.0 + 0.01 * i);
  record["phases"]["step"]["samples_ms"] = samples;
  record["phases"]["step"]["n"] = 50;
  const Json whole = shown(record)["steps"];
  EXPECT_EQ(whole["n"], 50);
  EXPECT_EQ(whole["ms"].size(), 50u);
  EXPECT_FALSE(whole.contains("at"));
  const Json thin = shown(record, 16)["steps"];
  EXPECT_LE(thin["ms"].size(), 16u);
  EXPECT_EQ(thin["ms"].size(), thin["at"].size());
  EXPECT_EQ(thin["quantiles"], whole["quantiles"]);
  EXPECT_EQ(thin["quantiles"][6], 9);
  EXPECT_EQ(thin["mean"], 1243.3);
}

TEST(CaseData, KernelsThatWereCountedArePointsOfTheRoofline) {
  host::Json record = ok_record();
  record.erase("rates");
  record["ncu"] = host::Json::parse(R"({"launches": 3, "at_limit": false, "table": "ncu_case-0001.csv", "kernels": [
    {"class": "matrix products", "name": "gemm", "count": 1, "time_us": 2.0, "dram_bytes": 4e6, "flops": 8e9},
    {"class": "copies and fills", "name": "fill", "count": 2, "time_us": 1.0, "dram_bytes": 4e6, "flops": 0.0}]})");
  const Json roofline = shown(record)["roofline"];
  EXPECT_EQ(roofline["kernels"], Json::parse(R"([["gemm", 4e6, 2000]])"));
  EXPECT_FALSE(roofline.contains("gflop_per_s"));
}

TEST(CaseData, PhasesAndKindsOfMemoryAreNamedOnceForAllCases) {
  SharedNames names;
  host::Json other = ok_record();
  other["phases"] = host::Json::parse(R"({"step": {"mean_ms": 2.0}, "backward": {"mean_ms": 1.0}})");
  const Json first = case_json(read(ok_record()), 100, names), second = case_json(read(other), 100, names);
  EXPECT_EQ(names.phases.names(), (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(first["phases"], Json::parse("[[0, 0.012346], [1, 800.5]]"));
  EXPECT_EQ(second["phases"], Json::parse("[[1, 1]]"));
  EXPECT_EQ(first["memory"]["kinds"], Json::parse("[[0, 490.5], [1, 300.25]]"));
  EXPECT_EQ(first["memory"]["total"], 790.75);
}

TEST(CaseData, PhasesOfStepsOfTheirOwnComeWithTheMeanOfThese) {
  host::Json record = ok_record();
  EXPECT_FALSE(shown(record).contains("phasesOf"));
  record["phase_pass"] = {{"steps", 4}, {"step_mean_ms", 1012.5}};
  EXPECT_EQ(shown(record)["phasesOf"], 1012.5);
}

TEST(CaseData, TheLimitOfMemoryIsThatOfTheProcessOrOfTheDevice) {
  host::Json record = ok_record();
  EXPECT_FALSE(shown(record)["memory"].contains("limit"));
  record["device"]["memory_total_mib"] = 24000.0;
  EXPECT_EQ(shown(record)["memory"]["limit"], Json::parse(R"({"mib": 24000, "of": "device"})"));
  record["settings"]["run.memory_limit"] = "2GiB";
  EXPECT_EQ(shown(record)["memory"]["limit"], Json::parse(R"({"mib": 2048, "of": "process"})"));
}

TEST(CaseData, TheRooflineHasTheCeilingsThatAreKnown) {
  SharedNames names;
  host::Json record = ok_record();
  record["efficiency"] =
      host::Json::parse(R"({"stated": {"gflop_per_s": 1000.0, "gbytes_per_s": 50.0, "text": "datasheet"}})");
  const Json roofline = case_json(read(record), 100, names)["roofline"];
  EXPECT_EQ(roofline["flops_per_byte"], 1);
  EXPECT_EQ(roofline["gflop_per_s"], 290.5);
  EXPECT_EQ(roofline["peaks"], Json::parse("[0]"));
  ASSERT_EQ(names.peak_figures.size(), 1u);
  EXPECT_EQ(names.peaks.names()[0], "stated: datasheet (1,000 GFLOP/s, 50.00 GB/s)");
  record["work"]["bytes"] = 0;
  EXPECT_FALSE(shown(record)["roofline"].contains("flops_per_byte"));
  record["work"]["flops"] = 0;
  EXPECT_FALSE(shown(record).contains("roofline"));
}

TEST(CaseData, TelemetryHasItsFiguresAndTheLimitsOfTheDevice) {
  SharedNames names;
  host::Json record = ok_record();
  record["device"]["power_limit_w"] = 700.0;
  record["telemetry"] = host::Json::parse(
      R"({"samples": 5, "power_w": {"mean": 600.0, "min": 550.0, "max": 650.0}, "throttle": {"power_cap": 0.4}})");
  const Json telemetry = case_json(read(record), 100, names)["telemetry"];
  EXPECT_EQ(telemetry["figures"], Json::parse("[[0, 600, 550, 650]]"));
  record["telemetry"]["power_w"]["min"] = record["telemetry"]["power_w"]["max"] = 600.0;
  EXPECT_EQ(shown(record)["telemetry"]["figures"], Json::parse("[[0, 600]]"));
  EXPECT_EQ(telemetry["throttle"], Json::parse(R"([["power_cap", 0.4]])"));
  EXPECT_EQ(telemetry["power_limit_w"], 700);
  EXPECT_EQ(names.telemetry.names(), std::vector<std::string>{"power, W"});
}

TEST(CaseData, RanksAreThereWhereThereAreSeveral) {
  host::Json record = ok_record();
  record["by_rank"] = host::Json::parse(
      R"([{"rank": 0, "host": "n1", "step_mean_ms": 10.0, "step_min_ms": 9.0, "step_max_ms": 11.0},
          {"rank": 1, "host": "n2", "step_mean_ms": 12.0}])");
  record["straggler"] = {{"rank", 1}, {"share", 0.8}};
  record["spread"] = 0.18;
  const Json ranks = shown(record)["ranks"];
  EXPECT_EQ(ranks["list"][0], Json::parse(R"({"rank": 0, "host": "n1", "ms": [10, 9, 11]})"));
  EXPECT_EQ(ranks["list"][1]["ms"], Json::parse("[12, null, null]"));
  EXPECT_EQ(ranks["straggler"], Json::parse("[1, 0.8]"));
  EXPECT_FALSE(ranks.contains("waited_for"));
  EXPECT_FALSE(shown(ok_record()).contains("ranks"));
}

TEST(CaseData, TheRankThatWaitsLeastIsTheOneThatOthersWaitFor) {
  host::Json record = ok_record();
  record["by_rank"] = host::Json::parse(
      R"([{"rank": 0, "step_mean_ms": 10.0, "phases": {"gradient_wait": 3.0, "parameter_wait": 1.5, "data_wait": 9.0}},
          {"rank": 1, "step_mean_ms": 10.0, "phases": {"gradient_wait": 1.0, "parameter_wait": 1.0}}])");
  Json ranks = shown(record)["ranks"];
  EXPECT_EQ(ranks["list"][0]["wait"], 4.5);
  EXPECT_EQ(ranks["list"][1]["wait"], 2);
  EXPECT_EQ(ranks["waited_for"], 1);
  // A workload that reports what collectives left uncovered counts waits within other phases, too.
  for (int rank : {0, 1}) record["by_rank"][rank]["metrics"] = {{"exposed_ms", 3.0 + rank}};
  ranks = shown(record)["ranks"];
  EXPECT_EQ(ranks["list"][0]["wait"], 3);
  EXPECT_EQ(ranks["waited_for"], 0);
}

}  // namespace
}  // namespace assay::host::report
