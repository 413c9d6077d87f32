// The samples are our own, by the formats' public descriptions; their figures are invented.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "compare/inputs.hpp"
#include "compare/metric.hpp"
#include "imported_run.hpp"
#include "imports/making_records.hpp"
#include "readers.hpp"

namespace assay::host::imports {
namespace {

const std::string nccl_output =
    "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
    "validation: 1 graph: 0\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid   100 on    node7 device  0 [0x18] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   100 on    node7 device  1 [0x2a] NVIDIA H100 80GB HBM3\n"
    "#\n"
    "#                                                       out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "        1024           256     float     sum      -1    10.50    0.10    0.10      0    10.25    0.10    0.10     "
    " 0\n"
    "node7:100:100 [0] NCCL INFO something that is said between the rows\n"
    "        2048           512     float     sum      -1    12.00    0.17    0.17      0    11.75    0.17    0.17     "
    " 4\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.135\n";

const std::string nvbench_file = R"({
  "meta": {"version": {}},
  "devices": [{"id": 0, "name": "NVIDIA H200"}],
  "benchmarks": [{"name": "copy", "index": 0, "axes": [], "states": [
    {"name": "Device=0 n=1024", "device": 0, "is_skipped": false,
     "axis_values": [{"name": "n", "type": "int64", "value": "1024"}, {"name": "T", "type": "string", "value": "F32"}],
     "summaries": [
       {"tag": "nv/cold/sample_size", "data": [{"name": "value", "type": "int64", "value": "50"}]},
       {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "1.25e-05"}]},
       {"tag": "nv/cold/time/gpu/stdev/relative", "data": [{"name": "value", "type": "float64", "value": "0.02"}]},
       {"tag": "nv/cold/bw/global/bytes_per_second", "data": [{"name": "value", "type": "float64", "value": "2e12"}]}]},
    {"name": "Device=0 n=2048", "device": 0, "is_skipped": true, "skip_reason": "too large",
     "axis_values": [{"name": "n", "type": "int64", "value": "2048"}, {"name": "T", "type": "string", "value": "F32"}],
     "summaries": []}]}]})";

const std::string hyperfine_file = R"({"results": [
  {"command": "sort -S 1 x", "mean": 0.2, "stddev": 0.01, "times": [0.19, 0.2, 0.21], "exit_codes": [0, 0, 0],
   "memory_usage_byte": [1048576, 2097152, 1048576], "parameters": {"threads": "1"}},
  {"command": "sort -S 2 x", "mean": 0.2, "times": [0.19, 0.2], "exit_codes": [0, 2], "parameters": {"threads": "2"}}]})";

const std::string hyperfine_2_file = R"({"schema_version": 2,
  "metadata": {"hyperfine_version": "2.0.0", "start_time": "2026-11-03T10:20:30.5+00:00"},
  "results": [{"command": "true", "name": "nothing", "measurements": [
    {"time_wall_clock": {"value": 0.5, "unit": "second"}, "memory_peak_resident": {"value": 3145728, "unit": "byte"},
     "exit_code": 0},
    {"time_wall_clock": {"value": 0.7, "unit": "second"}, "exit_code": 0}]}]})";

const std::string pytorch_file = R"([
  {"benchmark": {"name": "op", "mode": "training", "dtype": "bf16", "extra_info": {"device": "cuda"}},
   "model": {"name": "layer_norm", "type": "op"}, "metric": {"name": "latency", "benchmark_values": [41.5, 42.5]}},
  {"benchmark": {"name": "op", "mode": "training", "dtype": "bf16", "extra_info": {"device": "cuda"}},
   "model": {"name": "layer_norm", "type": "op"}, "metric": {"name": "peak_memory", "benchmark_values": [512]}},
  {"benchmark": {"name": "op", "mode": "training", "dtype": "bf16", "extra_info": {"device": "cuda"}},
   "model": {"name": "softmax", "type": "op"}, "metric": {"name": "latency", "benchmark_values": []}}])";

ImportedRun imported(const std::string& text, const ImportOptions& options = {}) {
  return format_of(text, "").read(text, options);
}

TEST(Imports, NcclTests) {
  const ImportedRun run = imported(nccl_output, {.file_name = "all_reduce_perf.txt"});
  EXPECT_EQ(run.name, "nccl-tests-all_reduce");
  EXPECT_EQ(run.host, "node7");
  ASSERT_EQ(run.records.size(), 4u);
  const record::CaseRecord& first = run.records[0];
  EXPECT_EQ(first.identity.workload, "nccl-tests:all_reduce");
  EXPECT_EQ(first.identity.ranks, 2);
  EXPECT_EQ(first.result.device->name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(param(first, "bytes"), "1024");
  EXPECT_EQ(param(first, "in_place"), "false");
  EXPECT_EQ(param(first, "redop"), "sum");
  EXPECT_DOUBLE_EQ(*step(first).mean_ms, 0.0105);
  EXPECT_EQ(step(first).n, 20);
  EXPECT_EQ(first.result.verify->status, record::Verification::ok);
  EXPECT_DOUBLE_EQ(record::find(first.result.metrics, "busbw_gbytes_per_s")->value, 0.10);
  std::vector<std::string> axes;
  for (const auto& axis : first.identity.axes) axes.push_back(axis.first);
  EXPECT_EQ(axes, (std::vector<std::string>{"bytes", "in_place"}));
  EXPECT_EQ(run.records[3].result.status, record::Status::wrong_result) << "in place, 2048 bytes: 4 wrong elements";
  EXPECT_FALSE(run.records[3].result.phases);
}

TEST(Imports, NcclTestsThatLackWhatARecordNeeds) {
  EXPECT_NE(problem([] { imported(nccl_output, {.file_name = "out.txt"}); }).find("--name all_reduce"),
            std::string::npos);
  const std::string rows = nccl_output.substr(nccl_output.find("        1024"));
  EXPECT_NE(problem([&] { read_nccl_tests(rows, {.name = "all_reduce"}); }).find("no line of columns"),
            std::string::npos);
  const std::string head = nccl_output.substr(0, nccl_output.find("        1024"));
  EXPECT_NE(problem([&] { read_nccl_tests(head, {.name = "all_reduce"}); }).find("no row of figures"),
            std::string::npos);
}

TEST(Imports, Nvbench) {
  const ImportedRun run = imported(nvbench_file);
  ASSERT_EQ(run.records.size(), 2u);
  const record::CaseRecord& copy = run.records[0];
  EXPECT_EQ(copy.identity.workload, "nvbench:copy");
  EXPECT_EQ(copy.identity.params[0].second, Value(std::int64_t{1024}));
  EXPECT_EQ(copy.result.device->name, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(*step(copy).mean_ms, 0.0125);
  EXPECT_DOUBLE_EQ(*step(copy).std_ms, 0.00025);
  EXPECT_EQ(step(copy).n, 50);
  EXPECT_DOUBLE_EQ(*copy.result.rates->gbytes_per_s, 2000);
  EXPECT_EQ(run.records[1].result.status, record::Status::unsupported);
  EXPECT_EQ(run.records[1].result.reason, "skipped: too large");
}

TEST(Imports, Hyperfine) {
  const ImportedRun run = imported(hyperfine_file);
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(step(run.records[0]).samples_ms, (std::vector<double>{190, 200, 210}));
  EXPECT_EQ(param(run.records[0], "command"), "sort -S 1 x");
  EXPECT_EQ(*record::find(run.records[0].identity.params, "threads"), Value(std::int64_t{1}));
  EXPECT_EQ(run.records[0].result.memory->process_peak_mib, 2.0);
  EXPECT_EQ(run.records[1].result.status, record::Status::failed) << "a run that failed has no time";
  EXPECT_EQ(run.records[1].result.reason, "exit code 2 in 1 of 2 runs");
}

TEST(Imports, HyperfineOfTheSecondSchema) {
  const ImportedRun run = imported(hyperfine_2_file);
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_EQ(step(run.records[0]).samples_ms, (std::vector<double>{500, 700}));
  EXPECT_EQ(run.records[0].result.memory->process_peak_mib, 3.0);
  EXPECT_EQ(run.started, "2026-11-03T10:20:30.5+00:00");
}

TEST(Imports, PytorchSaysNoUnits) {
  const ImportedRun run = imported(pytorch_file);
  ASSERT_EQ(run.records.size(), 1u) << "a metric without values is no case";
  EXPECT_FALSE(run.notes.empty());
  const record::CaseRecord& record = run.records[0];
  EXPECT_EQ(record.identity.workload, "pytorch:op");
  EXPECT_EQ(param(record, "model"), "layer_norm");
  EXPECT_EQ(param(record, "dtype"), "bf16");
  EXPECT_EQ(param(record, "device"), "cuda");
  EXPECT_FALSE(record.result.phases) << "'latency' may be in any unit";
  EXPECT_DOUBLE_EQ(record::find(record.result.metrics, "latency")->value, 42);
  const ImportedRun told = imported(pytorch_file, {.step_ms = {{"latency", 1e-3}}});
  EXPECT_EQ(step(told.records[0]).samples_ms, (std::vector<double>{0.0415, 0.0425}));
  EXPECT_DOUBLE_EQ(record::find(told.records[0].result.metrics, "peak_memory")->value, 512);
}

TEST(Imports, WhatTheyMakeIsCompared) {
  const auto a = imported(hyperfine_file).records[0];
  const auto metric = compare::metric_of(a, "step");
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->figure.samples.size(), 3u);
  const auto b = imported(nvbench_file).records[0];
  ASSERT_TRUE(compare::metric_of(b, "step"));
  EXPECT_TRUE(compare::metric_of(b, "gbytes_per_s"));
  EXPECT_TRUE(compare::metric_of(imported(nccl_output, {.name = "all_reduce"}).records[0], "busbw_gbytes_per_s"));
}

TEST(Imports, WhatIsNoneOfThemIsRefused) {
  EXPECT_NE(problem([] { format_of("hello", ""); }).find("nccl-tests, nvbench, hyperfine, pytorch, "),
            std::string::npos);
  EXPECT_NE(problem([] { format_of("hello", "nvbnech"); }).find("did you mean 'nvbench'?"), std::string::npos);
  for (const Format& format : all_formats())
    for (const char* text : {"", "{", "[]", "{}", "[1, null]", "null", R"({"results": 3, "benchmarks": {}})",
                             R"({"results": [], "benchmarks": [{"states": [{}]}]})", R"([{"metric": {"name": "x"}}])"})
      if (std::string(format.name) != "nvbench" || std::string(text).find("states") == std::string::npos) {
        EXPECT_NE(problem([&] { format.read(text, {}); }), "") << format.name << ": " << text;
      }
  const ImportedRun bare = read_nvbench(R"({"benchmarks": [{"states": [{}]}]})", {});
  EXPECT_EQ(bare.records.at(0).result.status, record::Status::failed) << "a state without a time";
}

TEST(Imports, NestingThatIsTooDeepIsNoJson) {
  const std::string deep =
      "{\"benchmarks\": " + std::string(100000, '[') + std::string(100000, ']') + ", \"states\": 1}";
  EXPECT_THROW(read_nvbench(deep, {}), ImportError);
  EXPECT_THROW(read_pytorch(deep, {}), ImportError);
  EXPECT_THROW(read_hyperfine(deep, {}), ImportError);
}

TEST(Imports, TimesAndCountsThatCannotBeAreNone) {
  const ImportedRun run = read_hyperfine(
      R"({"results": [{"command": "a", "times": [0.1, 0.0]}, {"command": "b", "times": [0.1, -1]}, {"command": "c", "times": [0.1]}, {"command": "d", "mean": 1e308, "stddev": -1}]})",
      {});
  ASSERT_EQ(run.records.size(), 4u);
  EXPECT_EQ(run.records[3].result.status, record::Status::failed);
  EXPECT_EQ(run.records[0].result.status, record::Status::failed);
  EXPECT_EQ(run.records[1].result.status, record::Status::failed);
  EXPECT_EQ(run.records[2].result.status, record::Status::ok);
  for (const double none : {-1.0, 0.5, 1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(count_of(none)) << none;
  EXPECT_EQ(count_of(1024.0), 1024);
}

// Nothing is dropped so that the rest can stand as the whole.
TEST(Imports, FiguresThatCannotBeAreNoResults) {
  const auto reason = [](const ImportedRun& run) {
    const record::CaseResult& result = run.records.at(0).result;
    EXPECT_NE(result.status, record::Status::ok);
    EXPECT_FALSE(result.phases) << result.reason;
    EXPECT_FALSE(result.rates) << result.reason;
    return result.reason;
  };
  const auto hyperfine = [&](const std::string& rest) {
    return reason(read_hyperfine(R"({"results": [{"command": "a", )" + rest + "}]}", {}));
  };
  EXPECT_EQ(hyperfine(R"("times": [0.1, "soon"])"), "one of its times is no number: \"soon\"");
  EXPECT_NE(hyperfine(R"("times": [0.1, 0.0])").find("one of its times is 0 s (hyperfine takes"), std::string::npos);
  EXPECT_EQ(hyperfine(R"("times": [0.1, null])"), "one of its times is no number: null");
  EXPECT_EQ(hyperfine(R"("times": [0.1], "memory_usage_byte": [-5])"), "one of its peaks of memory is -5 bytes");
  EXPECT_EQ(hyperfine(R"("times": [0.1, 0.2], "exit_codes": [0, 1e300])"), "exit code 1e+300 in 1 of 2 runs");
  EXPECT_EQ(hyperfine(R"("times": [0.1, 0.2], "exit_codes": [null, 0])"), "killed by a signal in 1 of 2 runs");
  EXPECT_EQ(hyperfine(R"("measurements": [{"time_wall_clock": {"value": 5, "unit": "ms"}, "exit_code": 0}])"),
            "one of its runs has no time in seconds");
  const auto nvbench = [&](const std::string& tag, const std::string& value) {
    std::string text = nvbench_file;
    const std::string before = R"({"tag": "nv/cold/bw)";
    text.insert(
        text.find(before),
        R"({"tag": ")" + tag + R"(", "data": [{"name": "value", "type": "float64", "value": ")" + value + R"("}]}, )");
    return reason(read_nvbench(text, {}));
  };
  EXPECT_EQ(nvbench("nv/cold/time/gpu/min", "-5"), "its nv/cold/time/gpu/min is -5 s");
  EXPECT_EQ(nvbench("nv/cold/time/gpu/median", "-1"), "its nv/cold/time/gpu/median is -1 s");
  EXPECT_EQ(nvbench("nv/cold/time/cpu/mean", "1e300"), "its nv/cold/time/cpu/mean is 1e+300 s");
  EXPECT_EQ(nvbench("nv/cold/bw/item_rate", "-1e300"), "its nv/cold/bw/item_rate is -1e+300 a second");

  const auto pytorch = [](const std::string& values, const ImportOptions& options = {}) {
    return read_pytorch(R"([{"benchmark": {"name": "b"}, "metric": {"name": "latency", "benchmark_values": )" + values +
                            R"(}}, {"benchmark": {"name": "b"}, "metric": {"name": "m", "benchmark_values": [1]}}])",
                        options);
  };
  const ImportedRun odd = pytorch(R"([1, "soon"])");
  EXPECT_FALSE(record::find(odd.records.at(0).result.metrics, "latency"));
  ASSERT_EQ(odd.notes.size(), 1u);
  EXPECT_EQ(odd.notes[0], "metrics left out, since they have no value, or one that is no number: 1");
  const ImportOptions told{.step_ms = {{"latency", 1}}};
  EXPECT_EQ(reason(pytorch("[1, -1]", told)), "its latency, the time of a step, has the value -1");
  EXPECT_EQ(record::find(pytorch("[1e308, 1e308]").records.at(0).result.metrics, "latency")->value, 1e308);
}

TEST(Imports, WholeNumbersThatNoneOfOursHoldsAreKeptAsTheyAreWritten) {
  const std::string params = R"({"n": 18446744073709551615, "m": 9223372036854775807})";
  for (const ImportedRun& run :
       {read_hyperfine(R"({"results": [{"command": "a", "times": [1], "parameters": )" + params + "}]}", {}),
        read_pytorch(R"([{"benchmark": {"name": "b", "extra_info": )" + params +
                         R"(}, "metric": {"name": "m", "benchmark_values": [1]}}])",
                     {})}) {
    EXPECT_EQ(param(run.records.at(0), "n"), "18446744073709551615");
    EXPECT_EQ(param(run.records.at(0), "m"), "9223372036854775807");
  }
}

TEST(Imports, PytorchEntriesOfOneMetricAreRepeats) {
  std::string lines;
  for (const char* values : {"[1]", "[100]", "[50, 60]"})
    for (const char* metric : {"latency_ms", "speedup"})
      lines += std::string(R"({"benchmark": {"name": "b"}, "model": {"name": "m"}, "metric": {"name": ")") + metric +
               R"(", "benchmark_values": )" + values + "}}\n";
  ImportedRun run = read_pytorch(lines, {});
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_EQ(number_repeats(run.records), 3u);
  const double mean_ms[] = {1, 100, 55};
  for (std::size_t i = 0; i < 3; ++i) {
    const record::CaseRecord& record = run.records[i];
    EXPECT_EQ(record.identity.repeat, static_cast<std::int64_t>(i) + 1);
    EXPECT_DOUBLE_EQ(*step(record).mean_ms, mean_ms[i]);
    ASSERT_TRUE(record.result.metrics);
    EXPECT_EQ(record.result.metrics->size(), 1u);
    EXPECT_DOUBLE_EQ(record::find(record.result.metrics, "speedup")->value, mean_ms[i]);
  }
}

TEST(Imports, CasesThatNothingTellsApartAreRepeats) {
  ImportedRun run = read_hyperfine(
      R"({"results": [{"command": "a", "times": [0.1]}, {"command": "b", "times": [0.1]}, {"command": "a", "times": [0.2]}]})",
      {});
  EXPECT_EQ(number_repeats(run.records), 2u);
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_EQ(run.records[0].identity.repeat, 1);
  EXPECT_FALSE(run.records[1].identity.repeat);
  EXPECT_EQ(run.records[2].identity.repeat, 2);
}

}  // namespace
}  // namespace assay::host::imports
