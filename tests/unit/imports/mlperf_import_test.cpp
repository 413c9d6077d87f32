// Lines of MLPerf as mlperf-logging 4.1.68 (training) and mlcommons-loadgen 6.0.17 (inference) write them, and
// parameters as pytest-benchmark 5.3.1 does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "imported_run.hpp"
#include "imports/formats.hpp"

namespace assay::host::imports {
namespace {

std::string training_line(const char* time_ms, const char* type, const char* key, const std::string& rest) {
  return fmt::format(R"(:::MLLOG {{"namespace": "worker1", "time_ms": {}, "event_type": "{}", "key": "{}", {}}})",
                     time_ms, type, key, rest) +
         "\n";
}
std::string whole_run(const std::string& within) {
  return training_line("1000", "INTERVAL_START", "run_start", R"("value": null)") + within +
         training_line("1300.5", "INTERVAL_END", "run_stop", R"("value": null, "metadata": {"status": "success"})");
}

// Python writes NaN, which JSON has not: its line is whole.
TEST(Mlperf, NanIsNoTear) {
  const ImportedRun run = detected(whole_run(training_line("1010", "POINT_IN_TIME", "train_loss", R"("value": 3.0)") +
                                             training_line("1020", "POINT_IN_TIME", "train_loss", R"("value": NaN)")));
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_EQ(record::find(run.records[0].result.step_metrics, "train_loss")->samples, (std::vector<double>{3}));
  EXPECT_EQ(notes(run), "left out, since they are no numbers: train_loss\n");
}

TEST(Mlperf, TimesAndUnits) {
  const ImportedRun run = detected(whole_run(
      training_line("1010.25", "INTERVAL_START", "block_start",
                    R"("value": null, "metadata": {"first_epoch_num": 1, "epoch_count": 1})") +
      training_line("1110.75", "INTERVAL_END", "block_stop", R"("value": null, "metadata": {"first_epoch_num": 1})") +
      training_line("1111", "INTERVAL_END", "eval_stop", R"("value": null)") +
      training_line("1112", "POINT_IN_TIME", "tracked_stats",
                    R"("value": {"step_time_sec": 0.5, "memory": {"peak": 3}, "list": [1]})")));
  ASSERT_EQ(run.records.size(), 1u);
  const auto series = [&](const char* name) { return record::find(run.records[0].result.step_metrics, name); };
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 300.5) << "fractions of a millisecond";
  EXPECT_EQ(series("block_ms")->samples, (std::vector<double>{100.5}));
  EXPECT_EQ(series("block_ms")->unit, "ms");
  EXPECT_EQ(series("step_time_sec")->unit, "s");
  EXPECT_EQ(series("memory.peak")->samples, (std::vector<double>{3})) << "nested";
  EXPECT_EQ(notes(run), "left out, since they are no numbers: eval_stop without its start, list\n");
}

std::string inference_log(const char* validity, const char* errors = "0", const char* time_ms = "109.447312") {
  std::string log;
  const auto add = [&log, time_ms](const char* key, const std::string& value) {
    log += fmt::format(R"(:::MLLOG {{"key": "{}", "value": {}, "time_ms": {}, "namespace": "mlperf::logging", )"
                       R"("event_type": "POINT_IN_TIME", "metadata": {{"is_error": false}}}})",
                       key, value, time_ms);
    log += '\n';
  };
  add("loadgen_version", R"("6.0.17 @ d6147c7eb7")");
  add("test_datetime", R"("2026-11-29T11:09:08Z")");
  add("sut_name", R"("PySUT")");
  add("requested_min_query_count", "50");
  add("effective_scenario", R"("SingleStream")");
  add("effective_target_qps", "2000");
  add("result_validity", fmt::format("\"{}\"", validity));
  add("result_query_count", "152");
  add("result_qps_with_loadgen_overhead", "1508.19");
  add("result_min_latency_ns", "551189");
  add("result_mean_latency_ns", "657782");
  add("result_90.00_percentile_latency_ns", "609616");
  add("result_97.00_percentile_latency_ns", "669384");
  add("num_errors", errors);
  return log;
}

TEST(Mlperf, InferenceIsInNanoseconds) {
  const ImportedRun run = detected(inference_log("VALID"));
  ASSERT_EQ(run.records.size(), 1u);
  const record::CaseRecord& record = run.records[0];
  EXPECT_EQ(record.identity.workload, "mlperf-inference:SingleStream");
  EXPECT_EQ(param(record, "effective_target_qps"), "2000");
  EXPECT_DOUBLE_EQ(*step(record).mean_ms, 0.657782);
  EXPECT_DOUBLE_EQ(*step(record).p90_ms, 0.609616);
  EXPECT_EQ(step(record).n, 152);
  EXPECT_DOUBLE_EQ(metric(record, "qps_with_loadgen_overhead"), 1508.19);
  EXPECT_DOUBLE_EQ(metric(record, "97.00_percentile_latency_ns"), 669384);
  EXPECT_EQ(record::find(record.result.metrics, "97.00_percentile_latency_ns")->unit, "ns");
  EXPECT_EQ(run.started, "2026-11-29T11:09:08Z");
  EXPECT_EQ(notes(run), "left out: requested_min_query_count\n");
  const ImportedRun invalid = detected(inference_log("INVALID"));
  EXPECT_EQ(invalid.records[0].result.reason, "result_validity is INVALID");
  EXPECT_FALSE(invalid.records[0].result.phases);
}

// The last of them does not decide for all.
TEST(Mlperf, InferenceOfTwoRunsIsTwoCases) {
  const ImportedRun run = detected(inference_log("INVALID") + inference_log("VALID", "0", "7.5"));
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(run.records[0].result.reason, "result_validity is INVALID");
  EXPECT_TRUE(run.records[1].result.is_ok());
  EXPECT_EQ(run.records[1].identity.index, 1);
  EXPECT_EQ(detected(inference_log("VALID", R"("3")")).records[0].result.reason, "num_errors is 3");
  EXPECT_EQ(detected(inference_log("VALID", R"("many")")).records[0].result.reason, "num_errors is \"many\"");
}

TEST(PytestBenchmark, ParametersThatAreNoneOrNotThere) {
  const auto entry = [](const char* name, const char* params) {
    return fmt::format(R"({{"name": "{}", "fullname": "t.py::{}", {}, "stats": {{"mean": 1, "rounds": 5}}}})", name,
                       name, params);
  };
  const ImportedRun run = detected(R"({"machine_info": {"node": "a"}, "version": "5.3.1", "benchmarks": [)" +
                                   entry("a[10-None]", R"("param": "10-None", "params": {"n": 10, "m": null})") + "," +
                                   entry("b[x]", R"("param": "x", "params": null)") + "]}");
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(param(run.records[0], "n"), "10");
  EXPECT_EQ(param(run.records[0], "m"), "None");
  EXPECT_EQ(param(run.records[0], "param"), "");
  EXPECT_EQ(param(run.records[1], "param"), "x");
  EXPECT_EQ(*record::find(run.records[0].result.libraries, "pytest-benchmark"), "5.3.1");
}

}  // namespace
}  // namespace assay::host::imports
