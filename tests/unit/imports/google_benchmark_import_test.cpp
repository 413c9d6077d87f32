// google-benchmark beyond one benchmark after another: made by its Python package 1.9.5, and shortened.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "imported_run.hpp"
#include "imports/formats.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

std::string google_entry(const std::string& name, int family, const std::string& rest) {
  return fmt::format(R"({{"name": "{}", "family_index": {}, "per_family_instance_index": 0, "run_name": "BM_same",
      "repetitions": 3, "threads": 1, {}}})",
                     name, family, rest);
}
std::string google_aggregate(int family, const std::string& name, const std::string& unit, double real_time) {
  return google_entry("BM_same_" + name, family,
                      fmt::format(R"("run_type": "aggregate", "aggregate_name": "{}", "aggregate_unit": "{}",
      "iterations": 3, "real_time": {}, "cpu_time": 1, "time_unit": "us")",
                                  name, unit, real_time));
}
std::string google_json(const std::string& entries) {
  return R"({"context": {"library_version": "1.9.5"}, "benchmarks": [)" + entries + "]}";
}

TEST(GoogleBenchmark, FamiliesOfOneNameAreCasesOfTheirOwn) {
  const auto repetition = [](int family, int index, int real_time) {
    return google_entry("BM_same", family,
                        fmt::format(R"("run_type": "iteration", "repetition_index": {}, "iterations": 10,
      "real_time": {}, "cpu_time": 1, "time_unit": "ns")",
                                    index, real_time));
  };
  ImportedRun run = detected(google_json(repetition(0, 0, 200) + "," + repetition(0, 1, 210) + "," +
                                         repetition(1, 0, 120000) + "," + google_aggregate(1, "mean", "time", 120)));
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_EQ(number_repeats(run.records), 2u) << "the repetitions of the first one";
  EXPECT_EQ(param(run.records[1], "namesake"), "1");
  EXPECT_EQ(param(run.records[2], "namesake"), "2");
  EXPECT_EQ(*record::find(run.records[0].result.libraries, "google-benchmark"), "1.9.5");
  const ImportedRun alone = detected(google_json(repetition(4, 0, 200)));
  EXPECT_EQ(param(alone.records.at(0), "namesake"), "") << "no other has the name";
}

TEST(GoogleBenchmark, AggregatesInAnyOrder) {
  const ImportedRun run = detected(
      google_json(google_aggregate(0, "median", "time", 20) + "," + google_aggregate(0, "cv", "percentage", 0.1) + "," +
                  google_aggregate(0, "stddev", "time", 3) + "," + google_aggregate(0, "mean", "time", 30) + "," +
                  google_aggregate(0, "spread", "percentage", 0.4) + "," + google_aggregate(1, "median", "time", 7)));
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 0.030);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).p50_ms, 0.020);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).std_ms, 0.003);
  EXPECT_EQ(run.records[1].result.reason, "its aggregates have no mean");
  EXPECT_NE(notes(run).find("aggregates left out: spread\n"), std::string::npos) << notes(run);
  EXPECT_NE(notes(run).find("left out of aggregates but the mean: cpu_time, rates and counters"), std::string::npos);
}

TEST(GoogleBenchmark, AUnitThatNobodyKnowsIsNotNanoseconds) {
  const std::string text = google_json(google_entry(
      "BM_same", 0, R"("run_type": "iteration", "iterations": 1, "real_time": 5, "cpu_time": 1, "time_unit": "min")"));
  EXPECT_EQ(problem([&] { detected(text); }), "'BM_same' has the time_unit 'min'; expected ns, us, ms or s");
  EXPECT_NE(problem([&] { detected(with(text, ", \"time_unit\": \"min\"", ", \"time_unit\": null")); }), "");
}

// "3.1" and "3.10" are two programs in a scan over versions.
TEST(Hyperfine, ParametersAreTexts) {
  const std::string csv = "command,mean,stddev,median,user,system,min,max,parameter_n\n";
  const std::string rest = ",0.002,0.001,0.002,0.001,0,0.001,0.004,";
  const ImportedRun of_csv = detected(csv + "echo" + rest + "3.1\necho" + rest + "3.10\necho" + rest + "1e1\n");
  ImportedRun of_json = detected(
      R"({"results": [{"command": "echo", "times": [1], "parameters": {"n": "3.1"}},
          {"command": "echo", "times": [1], "parameters": {"n": "3.10"}}]})");
  EXPECT_EQ(param(of_csv.records[0], "n"), "3.1");
  EXPECT_EQ(param(of_csv.records[1], "n"), "3.10");
  EXPECT_EQ(param(of_csv.records[2], "n"), "1e1");
  EXPECT_EQ(param(of_json.records[1], "n"), "3.10");
  EXPECT_EQ(*record::find(of_json.records[0].identity.params, "n"), Value(3.1)) << "a number stays one";
  EXPECT_EQ(number_repeats(of_json.records), 0u);
}

}  // namespace
}  // namespace assay::host::imports
