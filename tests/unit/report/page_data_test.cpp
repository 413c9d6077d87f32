// The whole of what a page shows.
#include "report/page_data.hpp"

#include "report/page.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

host::Json with_batch(int batch_size, std::int64_t index) {
  host::Json record = ok_record();
  record["index"] = index;
  record["axes"] = {{"batch_size", batch_size}};
  record["params"]["batch_size"] = batch_size;
  return record;
}

ReportedRuns runs_of(const std::vector<host::Json>& records) {
  ReportedRun run{"A", "results/sizes/x", {}};
  run.table.source.run = "x";
  run.table.source.experiment = "sizes";
  for (const host::Json& record : records) run.table.records.push_back(record.get<record::CaseRecord>());
  ReportedRuns out;
  out.runs.push_back(std::move(run));
  return out;
}

TEST(PageData, TheTableIsThatOfAssayTable) {
  const Json data = page_data(runs_of({with_batch(4, 0), with_batch(8, 1)}), {.made = "2026-11-24T00:00:00Z"});
  std::vector<std::string> columns;
  for (const Json& column : data["columns"]) columns.push_back(column["name"]);
  const auto at = [&columns](const std::string& name) {
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  ASSERT_LT(at("step.mean_ms"), columns.size());
  EXPECT_EQ(data["cases"][1]["cells"].size(), columns.size());
  EXPECT_EQ(data["cases"][1]["cells"][at("batch_size")], "8");
  EXPECT_EQ(data["cases"][0]["cells"][at("step.mean_ms")], "1,243");
  EXPECT_EQ(data["columns"][at("step.mean_ms")]["number"], true);
  EXPECT_EQ(data["columns"][at("batch_size")]["input"], true);
  EXPECT_FALSE(data["columns"][at("status")].contains("number"));
  EXPECT_FALSE(data["columns"][at("step.mean_ms")].contains("input"));
}

TEST(PageData, ColumnsOfSeveralRunsAreThoseOfEachAndWhatDiffersBetweenThem) {
  ReportedRuns runs = runs_of({with_batch(4, 0), with_batch(8, 1)});
  host::Json other = with_batch(4, 0);
  other["params"]["lr"] = 0.5;
  other["settings"]["run.seed"] = 7;
  other["phases"].erase("forward");
  other["phases"]["loss"] = {{"mean_ms", 1.0}};
  runs.runs.push_back(runs_of({other}).runs.front());
  const Json data = page_data(runs, {});
  std::vector<std::string> columns;
  for (const Json& column : data["columns"]) columns.push_back(column["name"]);
  const std::vector<std::string> begin(columns.begin(), columns.begin() + 12);
  EXPECT_EQ(begin, (std::vector<std::string>{"lr", "batch_size", "step.mean_ms", "step.std_ms", "tokens_per_s",
                                             "memory.step_peak.max_mib", "parameters", "ratio", "loss.mean",
                                             "forward.mean_ms", "backward.mean_ms", "loss.mean_ms"}));
  EXPECT_EQ(std::count(columns.begin(), columns.end(), "run.seed"), 0);
  EXPECT_EQ(data["cases"][2]["cells"][0], "0.5");
  EXPECT_EQ(data["cases"].size(), 3u);
}

TEST(PageData, NodesStandInTheTableWhereThereAreSeveral) {
  host::Json here = with_batch(4, 0), there = with_batch(8, 1);
  here["host"] = there["host"] = "n1";
  EXPECT_NE(page_data(runs_of({here, there}), {})["columns"][0]["name"], "host");
  there["host"] = "n2";
  const Json data = page_data(runs_of({here, there}), {});
  EXPECT_EQ(data["columns"][0]["name"], "host");
  EXPECT_EQ(data["cases"][1]["cells"][0], "n2");
}

TEST(PageData, NumbersThatVaryAreThoseToDrawOver) {
  const Json data = page_data(runs_of({with_batch(4, 0), with_batch(8, 1)}), {});
  ASSERT_EQ(data["inputs"].size(), 1u);
  EXPECT_EQ(data["inputs"][0], Json::parse(R"({"name": "batch_size", "values": [4, 8]})"));
}

TEST(PageData, ARunSaysWhatRanOnWhatAndWhatIsTheSame) {
  const Json run = page_data(runs_of({with_batch(4, 0), with_batch(8, 1)}), {})["runs"][0];
  EXPECT_EQ(run["label"], "A");
  EXPECT_EQ(run["facts"][0], Json::parse(R"(["workload", "decoder"])"));
  EXPECT_EQ(run["facts"][1], Json::parse(R"x(["device", "AMD EPYC (cpu)"])x"));
  bool has_rate = false;
  for (const Json& same : run["same"]) {
    EXPECT_NE(same[0], "batch_size");
    has_rate |= same == Json::parse(R"(["lr", "0.0001"])");
  }
  EXPECT_TRUE(has_rate);
  EXPECT_EQ(run["verification"], Json::parse(R"([["all 2 cases", "ok: loss is near"]])"));
  EXPECT_EQ(run["notes"].size(), 2u);
}

TEST(PageData, APageOfAThousandCasesIsBelowTwoMegabytes) {
  std::vector<host::Json> records;
  for (int i = 0; i < 1000; ++i) {
    host::Json record = with_batch(i + 1, i);
    host::Json samples = host::Json::array();
    for (int k = 0; k < 200; ++k) samples.push_back(1.0 + 0.001234567 * ((k * 7919 + i) % 997));
    record["phases"]["step"]["samples_ms"] = samples;
    record["phases"]["step"]["n"] = 200;
    for (const char* phase : {"optimizer", "loss", "parameter_wait"})
      record["phases"][phase] = {{"mean_ms", 1.2345678 + i}, {"std_ms", 0.1}};
    record["telemetry"] = host::Json::parse(
        R"({"samples": 120, "gpu_utilisation_percent": {"mean": 97.512, "min": 91.01, "max": 100.0},
            "sm_clock_mhz": {"mean": 1722.12, "min": 1605.0, "max": 1980.0},
            "power_w": {"mean": 612.123, "min": 550.5, "max": 699.9},
            "temperature_c": {"mean": 61.23, "min": 55.0, "max": 67.0}})");
    record["validity"] = {{"verdict", "valid"}, {"text", "SM clock " + std::to_string(1700 + i) + " MHz on all steps"}};
    record["verify"]["text"] = "loss " + std::to_string(i) + std::string(500, '.');
    records.push_back(record);
  }
  const std::string page = fitting_page(runs_of(records), {});
  EXPECT_LE(page.size(), most_page_bytes);
  EXPECT_GT(page.size(), most_page_bytes / 2);  // or these cases are no longer large ones
}

TEST(PageData, APageThatIsTooLargeHasFewerSamples) {
  std::vector<host::Json> records;
  for (int i = 0; i < 20; ++i) {
    records.push_back(with_batch(i + 1, i));
    for (int k = 0; k < 600; ++k) records.back()["phases"]["step"]["samples_ms"].push_back(1.0 + 0.0012345 * k);
  }
  const ReportedRuns runs = runs_of(records);
  const std::size_t whole = page_text(page_data(runs, {})).size(), smaller = whole - 20'000;
  EXPECT_EQ(fitting_page(runs, {}).size(), whole);
  EXPECT_LE(fitting_page(runs, {}, smaller).size(), smaller);
  // Where nothing helps, there is a page all the same.
  EXPECT_GT(fitting_page(runs, {}, 1000).size(), 100'000u);
}

TEST(PageData, ASinglePlotSaysWhichAndHowWide) {
  const Json data = page_data(runs_of({ok_record()}), {.plot = "steps", .width_px = 640});
  EXPECT_EQ(data["plot"], "steps");
  EXPECT_EQ(data["width_px"], 640);
  EXPECT_FALSE(page_data(runs_of({ok_record()}), {}).contains("plot"));
}

}  // namespace
}  // namespace assay::host::report
