#include "record/columns.hpp"
#include "record/identity_columns.hpp"

#include "sample_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace assay::host {
namespace {

struct Rule {
  const char* column;
  const char* csv;
  const char* display;
};

TEST(Columns, EachNameOfTheRecordHasItsCell) {
  const Json record = ok_record();
  const std::vector<Rule> rules{
      {"status", "ok", "ok"},
      {"reason", "", ""},
      {"index", "0", "0"},
      {"hash", "9f2c0a1b7d3e4f55", "9f2c0a1b7d3e4f55"},
      {"verify", "ok", "ok"},
      {"drift", "0.01", "0.01000"},
      {"notes", "one, with comma; two", "one, with comma; two"},
      {"device", "cpu", "cpu"},
      {"device.name", "AMD EPYC", "AMD EPYC"},
      {"size", "small", "small"},
      {"batch_size", "4096", "4096"},
      {"lr", "0.0001", "0.0001"},
      {"causal", "true", "true"},
      {"measure.warmup", "5", "5"},
      {"run.seed", "1234", "1234"},
      {"parameters", "128625408", "128,625,408"},
      {"ratio", "0.1234567", "0.1234567000"},
      {"loss.mean", "9.25", "9.250"},
      {"loss.std", "0.25", "0.2500"},
      {"loss.min", "9.0", "9.000"},
      {"loss.max", "9.5", "9.500"},
      {"loss.last", "9.25", "9.250"},
      {"step.mean_ms", "1243.25", "1,243"},
      {"step.mean_s", "1.24325", "1.243"},
      {"step.std_s", "0.0095", "0.009500"},
      {"step.cv", "0.008", "0.008000"},
      {"step.cv_percent", "0.8", "0.8000"},
      {"step.p90_ms", "1250.0", "1,250"},
      {"step.p95_ms", "1255.0", "1,255"},
      {"step.host_mean_ms", "1243.5", "1,244"},
      {"step.n", "10", "10"},
      {"forward.mean_ms", "0.0123456", "0.01235"},
      {"gflop_per_s", "290.5", "290.5"},
      {"tflop_per_s", "0.2905", "0.2905"},
      {"gbytes_per_s", "12.0", "12.00"},
      {"items_per_s", "1647.25", "1,647"},
      {"tokens_per_s", "1647.25", "1,647"},
      {"memory.peak_mib", "790.75", "790.8"},
      {"memory.process_peak_mib", "1012.25", "1,012"},
      {"memory.activations.peak_mib", "300.25", "300.2"},
      {"memory.after_setup.mib", "490.5", "490.5"},
      {"memory.after_setup.peak_mib", "500.5", "500.5"},
      {"memory.after_setup.parameters.mib", "490.5", "490.5"},
      {"memory.after_setup.parameters.peak_mib", "491.5", "491.5"},
      {"memory.data.peak_mib", "0.0", "0"},
      {"memory.after_setup.gradients.mib", "0.0", "0"},
      {"memory.before_step.parameters.mib", "2.0", "2.000"},
      {"memory.before_step.other.mib", "1.0", "1.000"},
      {"memory.before_step.since.after_setup.mib", "-487.5", "-487.5"},
      {"memory.step_peak.mean_mib", "780.5", "780.5"},
      {"memory.step_peak.min_mib", "770.25", "770.2"},
      {"memory.step_peak.max_mib", "790.75", "790.8"},
      {"memory_snapshot", "memory_case-0001.pickle", "memory_case-0001.pickle"},
      {"forward+backward.mean_ms", "800.5123456", "800.5"},
      {"forward+nothing.mean_ms", "0.0123456", "0.01235"},
      {"wall_s.case", "3.25", "3.250"},
      {"stage", "done", "done"},
      {"started", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"},
  };
  for (const Rule& rule : rules) {
    const record::Cell cell = cell_of(record, rule.column);
    EXPECT_EQ(csv_text(cell), rule.csv) << rule.column;
    EXPECT_EQ(display_text(cell), rule.display) << rule.column;
  }
}

TEST(Columns, WhatTheRecordLacksIsEmpty) {
  for (const char* column : {"nothing",
                             "forward.mean",
                             "forward.samples_ms",
                             "step.samples_ms",
                             "other.mean_ms",
                             "samples_per_s",
                             "loss",
                             "loss.median",
                             "memory.peak",
                             "memory.nothing.peak_mib",
                             "memory.after_setup.nothing.mib",
                             "memory.nowhere.data.mib",
                             "memory.activations.mib",
                             "memory.nowhere.other.mib",
                             "memory.before_step.since.nowhere.mib",
                             "memory.before_step.since.after_setup.peak_mib",
                             "forward+backward.std_ms",
                             "neither+nor.mean_ms",
                             "memory.",
                             "axes",
                             "phases",
                             "rank",
                             ".",
                             "",
                             "step.",
                             "wall_s.lunch",
                             "ranks",
                             "spread",
                             "straggler.rank",
                             "straggler.share",
                             "by_rank.step_mean_ms.min",
                             "by_rank.step_mean_ms.max"})
    EXPECT_TRUE(cell_of(ok_record(), column).empty()) << column;
  for (const char* column :
       {"step.mean_ms", "tokens_per_s", "memory.peak_mib", "memory.data.peak_mib", "parameters", "verify", "loss.last"})
    EXPECT_TRUE(cell_of(oom_record(), column).empty()) << column;
  EXPECT_TRUE(record::cell_of(record::CaseRecord(), "step.mean_ms").empty());
}

TEST(Columns, AStatusCannotBeHiddenByAParameter) {
  Json record = oom_record();
  record["params"]["status"] = "ok";
  EXPECT_EQ(csv_text(cell_of(record, "status")), "oom");
  record["params"]["rank"] = 8;  // of a low-rank adapter, say
  EXPECT_EQ(csv_text(cell_of(record, "rank")), "8");
}

TEST(Columns, APhaseMayBeNamedLikeAnotherGroup) {
  Json record = ok_record();
  record["phases"]["memory"] = record["phases"]["loss"] = {{"mean_ms", 2.5}};
  EXPECT_EQ(csv_text(cell_of(record, "memory.mean_ms")), "2.5");
  EXPECT_EQ(csv_text(cell_of(record, "memory.peak_mib")), "790.75");
  EXPECT_EQ(csv_text(cell_of(record, "loss.mean_ms")), "2.5");
  EXPECT_EQ(csv_text(cell_of(record, "loss.mean")), "9.25");
}

TEST(Columns, SamplesThatAreNoNumbersLeaveTheOthers) {
  for (const Json& samples : {Json({nullptr, 2.0, 1.0}), Json({2.0, nullptr, 1.0}), Json({2.0, 1.0, nullptr})}) {
    Json record = ok_record();
    record["step_metrics"]["loss"]["samples"] = samples;
    EXPECT_EQ(csv_text(cell_of(record, "loss.min")), "1.0") << samples;
    EXPECT_EQ(csv_text(cell_of(record, "loss.max")), "2.0") << samples;
    EXPECT_EQ(csv_text(cell_of(record, "loss.last")), "1.0") << samples;
  }
}

TEST(Columns, AMetricThatIsNoNumberIsEmpty) {
  Json record = ok_record();
  record["metrics"]["ratio"]["value"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(cell_of(record, "ratio").empty());
}

TEST(Columns, AMetricWithAWordShowsIt) {
  Json record = ok_record();
  record["metrics"]["logits_dtype"] = {{"value", 1}, {"word", "bf16"}, {"unit", ""}, {"direction", 0}};
  EXPECT_EQ(csv_text(cell_of(record, "logits_dtype")), "bf16");
  EXPECT_EQ(display_text(cell_of(record, "logits_dtype")), "bf16");
}

TEST(Columns, WhatIsBetterOrHasAUnitIsMeasuredAndHasFourDigits) {
  Json record = ok_record();
  record["metrics"]["ratio"]["direction"] = 1;
  EXPECT_EQ(display_text(cell_of(record, "ratio")), "0.1235");
  record["metrics"]["ratio"].update({{"direction", 0}, {"unit", "ms"}});
  EXPECT_EQ(display_text(cell_of(record, "ratio")), "0.1235");
}

TEST(ColumnTable, NoNameStandsTwice) {
  record::WorkloadNames workload;
  workload.phases = {"forward"};
  workload.item_unit = "tokens";
  std::vector<std::string> names = record::column_names(workload);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_GT(names.size(), 80u);
}

TEST(ColumnTable, EveryNameOfTheCheckHasACellInARecordThatHasEverything) {
  Json record = ok_record();
  record["rank"] = 1;
  record["repeat"] = 2;
  record["ranks"] = 2;
  record["copies"] = 2;
  record["spread"] = 0.1;
  record["straggler"] = {{"rank", 1}, {"share", 0.5}};
  record["by_rank"] = {{{"rank", 0}, {"host", "n0"}, {"step_mean_ms", 1.0}}};
  record["rates"]["gflop_per_s"] = 1.0;
  record["validity"] = {{"verdict", "valid"}, {"text", "alone"}};
  const Json peak = {{"gflop_per_s", 2.0}, {"gbytes_per_s", 2.0}, {"text", "a source"}};
  record["efficiency"] = {{"stated", peak},        {"measured", peak},    {"mfu", 0.5},
                          {"bound_percent", 50.0}, {"mfu_measured", 0.5}, {"bound_percent_measured", 50.0},
                          {"j_per_item", 0.5},     {"items_per_j", 2.0}};
  record["silent"] = {{"steps", 10}, {"step_mean_ms", 1.0}, {"communication_tax", 0.2}};
  record["memory"]["device_used_mib"] = 3.0;
  record["memory"]["unexplained_mib"] = 1.0;
  Json telemetry = {{"samples", 1},           {"energy_j", 1.0},           {"throttle", {{"power_cap", 0.5}}},
                    {"foreign_processes", 0}, {"foreign_memory_mib", 0.0}, {"utilisation_span_s", 0.1},
                    {"power_integral_j", 1.0}};
  for (const char* figure : {"gpu_utilisation_percent", "cpu_utilisation_percent", "sm_clock_mhz", "memory_clock_mhz",
                             "power_w", "temperature_c"})
    telemetry[figure] = {{"mean", 2.0}, {"min", 1.0}, {"max", 3.0}};
  record["telemetry"] = telemetry;
  record["sampling"] = {{"rule", "until"}, {"settling_steps", 4}, {"unrecorded_steps", 6}, {"mode", "waited"},
                        {"inner", 1},      {"cold", false},       {"instrument_us", 2.0}};
  for (const char* phase : {"step", "forward"})
    for (const char* figure :
         {"mean_ms", "std_ms", "cv", "min_ms", "max_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "ci_low_ms",
          "ci_high_ms", "host_mean_ms", "share", "device_mean_ms", "autocorrelation", "effective_n"})
      record["phases"][phase][figure] = 1.0;
  record["device"].update({{"uuid", "GPU-1"},
                           {"driver", "580"},
                           {"libraries", "demo 1"},
                           {"kind", "cuda"},
                           {"name", "a GPU"},
                           {"abi", "1.1"},
                           {"build", "GNU"}});
  record["plugin"] = {{"id", "org.x"}, {"version", "1.0.0"}, {"build", "GNU"}, {"file_hash", "00ff"}, {"abi", "1.3"}};
  record["host"] = "n0";
  record["environment"] = "00aa";
  record["repeat"] = 1;
  record["verify"]["refers_to"] = {{"index", 2}, {"hash", "9f2c"}, {"status", "ok"}};
  for (const char* part : {"load", "create", "warmup", "finish", "verify", "repeat", "peak", "destroy"})
    record["wall_s"][part] = 0.25;
  record::WorkloadNames workload;
  workload.params = {"batch_size"};
  workload.settings = {"run.seed"};
  workload.case_metrics = {"parameters"};
  workload.step_metrics = {"loss"};
  workload.phases = {"forward"};
  workload.item_unit = "tokens";
  const record::CaseRecord typed_record = typed(record);
  for (const std::string& name : record::column_names(workload))
    EXPECT_FALSE(record::cell_of(typed_record, name).empty()) << name;
}

TEST(ColumnTable, UnitsAndDirectionsAreThoseOfTheRow) {
  const record::CaseRecord sample = typed(ok_record());
  EXPECT_EQ(record::value_of(sample, "memory.peak_mib").unit, "MiB");
  EXPECT_TRUE(record::value_of(sample, "memory.peak_mib").exact);
  EXPECT_FALSE(record::value_of(sample, "memory.process_peak_mib").exact);
  EXPECT_EQ(record::value_of(sample, "step.mean_ms").unit, "ms");
  EXPECT_EQ(record::value_of(sample, "step.mean_ms").direction, Direction::lower_is_better);
  EXPECT_EQ(record::value_of(sample, "items_per_s").direction, Direction::higher_is_better);
  EXPECT_EQ(record::value_of(sample, "step.share").direction, Direction::neither);
}

// The list of columns of words is separate from the rows that fill them.
TEST(Columns, OfWordsAreKnownAsSuch) {
  Json json = ok_record();
  json["reason"] = "a reason";
  json["validity"] = {{"verdict", "valid"}, {"text", "quiet"}};
  json["telemetry"] = {{"throttle", {{"thermal", 0.5}}}, {"samples", 3}};
  json["memory_snapshot"] = "memory_case-0001.pickle";
  json["sampling"] = {{"rule", "until"}, {"mode", "waited"}, {"cold", true}};
  json["efficiency"] = {{"stated", {{"text", "a source"}}}, {"measured", {{"text", "by trial"}}}};
  json["rank"] = 1;
  json["verify"]["refers_to"] = {{"index", 2}, {"hash", "9f2c"}, {"status", "ok"}};
  json["device"].update(
      {{"uuid", "GPU-1"}, {"driver", "580"}, {"libraries", "demo 1"}, {"abi", "1.1"}, {"build", "GNU"}});
  json["plugin"] = {{"id", "org.x"}, {"version", "1.0.0"}, {"build", "GNU"}, {"file_hash", "00ff"}, {"abi", "1.3"}};
  json["host"] = "n0";
  json["environment"] = "00aa";
  const record::CaseRecord record = json;
  const auto check = [&record](std::span<const record::Column> columns) {
    for (const record::Column& column : columns) {
      const record::Cell cell = column.cell(record);
      const bool is_text = record::is_text_column(column.name);
      EXPECT_TRUE(!is_text || !cell.empty()) << column.name << " is a word that this record has not";
      EXPECT_TRUE(cell.empty() || cell.is_number() != is_text) << column.name;
    }
  };
  check(record::first_columns());
  check(record::later_columns());
  check(record::identity_columns());
  EXPECT_TRUE(record::is_text_column("files.plugin"));
  EXPECT_FALSE(record::is_text_column("step.mean_ms"));
}

TEST(Columns, TheHashOfEachFileIsAColumn) {
  Json json = ok_record();
  json["files"] = {{"host", "11"}, {"plugin", "22"}, {"input.weights", "33"}};
  EXPECT_EQ(cell_of(json, "files.plugin"), record::text_cell("22"));
  EXPECT_EQ(cell_of(json, "files.input.weights"), record::text_cell("33"));
  EXPECT_TRUE(cell_of(json, "files.device").empty());
  EXPECT_EQ(record::file_columns({typed(ok_record()), typed(json), typed(json)}),
            (std::vector<std::string>{"files.host", "files.plugin", "files.input.weights"}));
  for (const char* name :
       {"files.host", "files.plugin", "files.device", "files.plugin/libx.so", "files.comm.gloo", "files.input.weights"})
    EXPECT_TRUE(record::is_column(name, {})) << name;
  for (const char* name : {"files.", "files.hosts", "files.plugin/", "files.input.", "files.comm", "file.host"})
    EXPECT_FALSE(record::is_column(name, {})) << name;
}

TEST(Columns, ARatioNamesTheColumnThatItIsOf) {
  EXPECT_EQ(record::column_of_ratio("step.mean_ms.ratio"), "step.mean_ms");
  EXPECT_EQ(record::column_of_ratio("parameters.ratio"), "parameters");
  for (const char* name : {"ratio", ".ratio", "step.mean_ms", "speedup"})
    EXPECT_FALSE(record::column_of_ratio(name)) << name;
}

}  // namespace
}  // namespace assay::host
