#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/usage_error.hpp"
#include "exports/formats.hpp"
#include "imports/formats.hpp"
#include "imports/making_records.hpp"

namespace assay::host::exports {
namespace {

std::vector<results::TabledRun> runs() {
  record::CaseRecord record = imports::new_record("decoder", 0);
  record.identity.axes = {{"heads", std::int64_t{8}}};
  record.identity.params = {{"heads", std::int64_t{8}}, {"size", "small \"x\""}};
  record.started = "2026-11-29T08:00:00Z";
  record.host = "node7";
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", imports::step_of_samples({1, 2, 4.5}));
  record.result.rates = record::Rates{.gflop_per_s = 3, .gbytes_per_s = 2, .items_per_s = 1000};
  imports::add_metric(record, "loss.end", 0.5, "", Direction::lower_is_better);
  record::CaseRecord failed = imports::new_record("decoder", 1);
  failed.identity.axes = {{"heads", std::int64_t{16}}};
  failed.started = record.started;
  imports::fail(failed, "no room");
  results::TabledRun run;
  run.source.run = "20261129T080000Z-ab12";
  run.source.experiment = "a\"b";
  run.records = {record, failed};
  return {run};
}

TEST(Exports, OpenMetrics) {
  const std::string text = openmetrics(runs());
  EXPECT_NE(text.find("# TYPE assay_step_seconds gauge\n# UNIT assay_step_seconds seconds\n"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("assay_step_seconds{workload=\"decoder\",axis_heads=\"8\",case=\"1\",experiment=\"a\\\"b\",run=\"2026"
                "1129T080000Z-ab12\",host=\"node7\",stat=\"mean\"} 0.0025\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("status=\"failed\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("assay_metric_loss_end{"), std::string::npos);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  // The samples of a family stand together, behind its one line of type.
  EXPECT_EQ(text.find("# TYPE assay_case_ok"), text.rfind("# TYPE assay_case_ok"));
}

TEST(Exports, GoogleBenchmarkIsReadBack) {
  const std::string text = google_benchmark_json(runs());
  const imports::ImportedRun back = imports::format_of(text, "").read(text, {});
  ASSERT_EQ(back.records.size(), 4u) << "three samples, and a case that failed";
  EXPECT_EQ(back.records[0].identity.workload, "google-benchmark:decoder");
  EXPECT_DOUBLE_EQ(*record::find(back.records[2].result.phases, "step")->mean_ms, 4.5);
  EXPECT_DOUBLE_EQ(*back.records[0].result.rates->items_per_s, 1000);
  EXPECT_EQ(back.records[3].result.reason, "failed: no room");
  EXPECT_EQ(back.host, "node7");
  // What compare.py asks of each entry.
  const nlohmann::json exported = nlohmann::json::parse(text);
  for (const auto& entry : exported["benchmarks"])
    for (const char* key : {"name", "run_name", "run_type", "real_time", "cpu_time", "time_unit"})
      EXPECT_TRUE(entry.contains(key)) << key;
}

// compare.py pools what has one name.
TEST(Exports, GoogleBenchmarkNamesAreOfOneCaseOfOneRun) {
  std::vector<results::TabledRun> all = runs();
  all[0].records.push_back(all[0].records[0]);
  all[0].records[0].identity.repeat = 1;
  all[0].records[2].identity.repeat = 2;
  all.push_back(runs()[0]);
  all[1].source.run = "20261130T080000Z-cd34";
  all[1].records.push_back(all[1].records[1]);
  all[1].records[2].identity.index = 2;  // another case, which no axis shows
  std::map<std::string, std::int64_t> entries;
  const nlohmann::json exported = nlohmann::json::parse(google_benchmark_json(all));
  for (const auto& entry : exported["benchmarks"]) ++entries[entry["name"]];
  const std::string first = "/run:a\"b/20261129T080000Z-ab12", second = "/run:a\"b/20261130T080000Z-cd34";
  EXPECT_EQ(entries, (std::map<std::string, std::int64_t>{{"decoder/heads:8/repeat:1" + first, 3},
                                                          {"decoder/heads:8/repeat:2" + first, 3},
                                                          {"decoder/heads:16" + first, 1},
                                                          {"decoder/heads:8" + second, 3},
                                                          {"decoder/heads:16" + second + "/case:2", 1},
                                                          {"decoder/heads:16" + second + "/case:3", 1}}));
}

TEST(Exports, MlperfLinesAreReadBack) {
  const std::string text = mlperf_lines(runs());
  const imports::ImportedRun back = imports::format_of(text, "").read(text, {});
  ASSERT_EQ(back.records.size(), 2u);
  EXPECT_EQ(back.records[0].identity.workload, "mlperf:decoder");
  EXPECT_DOUBLE_EQ(*record::find(back.records[0].result.phases, "step")->mean_ms, 8)
      << "7.5 ms of steps, to the millisecond";
  EXPECT_EQ(to_text(*record::find(back.records[0].identity.params, "heads")), "8");
  EXPECT_DOUBLE_EQ(record::find(back.records[0].result.step_metrics, "throughput")->samples.at(0), 1000);
  EXPECT_EQ(back.records[1].result.status, record::Status::failed);
}

TEST(Exports, ChromeTrace) {
  std::vector<results::TabledRun> all = runs();
  all[0].records[0].result.wall.setup_s = 0.5;
  all[0].records[0].result.wall.measure_s = 0.25;
  all[0].records[0].result.wall.verify_s = 2;
  all[0].records[0].result.wall.repeat_s = 0.125;
  const nlohmann::json trace = nlohmann::json::parse(chrome_trace(all));
  std::vector<std::string> slices;
  std::map<std::string, double> begins;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") slices.push_back(event["name"]), begins.emplace(event["name"], event["ts"]);
  EXPECT_EQ(slices, (std::vector<std::string>{"decoder/heads:8", "setup", "measure", "verify", "repeat", "step", "step",
                                              "step", "decoder/heads:16"}));
  EXPECT_EQ(trace["otherData"]["started"], "2026-11-29T08:00:00Z");
  EXPECT_EQ(begins["decoder/heads:8"], 0);
  EXPECT_EQ(begins["step"], 0.5e6) << "where measuring begins";
  EXPECT_EQ(begins["verify"], 0.75e6);
  EXPECT_EQ(begins["repeat"], 0.75e6) << "a part of verify";
  EXPECT_EQ(begins["decoder/heads:16"], 2.75e6) << "not before the first one's end";
}

// As tensorboard 2.21 reads them.
TEST(Exports, TensorboardEvents) {
  const std::vector<ExportedFile> files = tensorboard_events(runs());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].place, "a-b/20261129T080000Z-ab12/1-decoder-heads-8/events.out.tfevents.0.assay");
  EXPECT_NE(files[0].place, files[1].place);
  // The first record of every such file: 24 bytes, a time, and the version of the format.
  const std::string& bytes = files[0].bytes;
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(bytes.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
  // Value of 4.5, and the tag before it.
  EXPECT_NE(bytes.find(std::string("\x0a\x07step/ms\x15\0\0\x90\x40", 14)), std::string::npos);
  EXPECT_NE(bytes.find("| size | small \"x\" |"), std::string::npos);
  EXPECT_EQ(tensorboard_events(runs())[0].bytes, bytes) << "to export once more changes nothing";
}

TEST(Exports, AFormatThatIsNone) {
  try {
    format_of("openmetric");
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'openmetrics'?"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::host::exports
