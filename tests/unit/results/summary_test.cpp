#include "results/summary.hpp"

#include "common/files.hpp"
#include "experiment/experiment.hpp"
#include "results/store.hpp"
#include "temporary_folder.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace assay::host::results {
namespace {

const std::string kStamp = "20261120T120000Z";
const std::string kEnvironmentText =
    R"json({"cpu": {"model": "AMD EPYC 9B14 (rev. 1)"}, "assay": {"version": "1.0.0"}})json";
const record::Environment kEnvironment = *record::Environment::parse(kEnvironmentText);

experiment::Experiment sweep() {
  experiment::Experiment experiment;
  experiment.name = "sweep";
  experiment.description = "by size";
  experiment.plugin = "decoder";
  experiment.resolved_toml = "schema = 1\n[measure]\nsteps = 10\n[sweep]\nsize = [\"small\", \"xl\"]\n";
  experiment.cases.resize(2);
  for (experiment::Case& c : experiment.cases) c.axes = {{"size", std::string("small")}};
  return experiment;
}

SummaryPart part(const std::vector<record::CaseRecord>& records) { return whole_run(sweep(), records); }

std::string file_name_of(const std::vector<record::CaseRecord>& records, const record::Environment& environment) {
  return summary_file_name(part(records), records, environment, kStamp);
}
std::string text_of(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records,
                    const record::Environment& environment) {
  return summary_json(experiment, part(records), records, environment, kStamp);
}

TEST(Summary, NamesOfFiles) {
  EXPECT_EQ(file_name_part("AMD EPYC 9B14 (rev. 1)"), "AMD_EPYC_9B14_rev._1");
  EXPECT_EQ(file_name_part("  Intel(R) Xeon(R) @ 2.10GHz  "), "Intel_R_Xeon_R_2.10GHz");
  EXPECT_EQ(file_name_part("../é/"), "..");  // no separator comes through
  EXPECT_EQ(file_name_part(""), "unknown");
  EXPECT_EQ(file_name_of({ok_record()}, kEnvironment), "bench_AMD_EPYC_9B14_rev._1_0gpu_20261120T120000Z.json");
  EXPECT_EQ(file_name_of({ok_record()}, record::Environment()), "bench_AMD_EPYC_0gpu_20261120T120000Z.json");
  EXPECT_EQ(file_name_of({}, record::Environment()), "bench_cpu_0gpu_20261120T120000Z.json");
  Json gpu = ok_record();
  gpu["device"] = {{"kind", "cuda"}, {"name", "NVIDIA H200"}};
  EXPECT_EQ(file_name_of({ok_record(), gpu}, kEnvironment), "bench_NVIDIA_H200_1gpu_20261120T120000Z.json");
  Json more = gpu;
  more["ranks"] = 4;
  EXPECT_EQ(file_name_of({gpu, more}, kEnvironment), "bench_NVIDIA_H200_4gpu_20261120T120000Z.json");
  Json ranks = ok_record();
  ranks["ranks"] = 2;
  EXPECT_EQ(file_name_of({ranks}, kEnvironment), "bench_AMD_EPYC_9B14_rev._1_0gpu_2ranks_20261120T120000Z.json");
}

TEST(Summary, HoldsMetadataConfigCasesAndTotals) {
  const Json summary = Json::parse(text_of(sweep(), {ok_record(), oom_record()}, kEnvironment));
  EXPECT_EQ(summary["schema"], 1);
  EXPECT_EQ(summary["metadata"]["experiment"], "sweep");
  EXPECT_EQ(summary["metadata"]["description"], "by size");
  EXPECT_EQ(summary["metadata"]["started"], "2026-11-20T12:00:00Z");
  EXPECT_EQ(summary["metadata"]["finished"], "2026-11-20T12:00:11Z");
  EXPECT_EQ(summary["metadata"]["host_version"], "1.0.0");
  EXPECT_EQ(summary["metadata"]["gpus"], 0);
  EXPECT_EQ(summary["metadata"]["ranks"], 1);
  EXPECT_EQ(summary["metadata"]["environment"], Json::parse(kEnvironmentText));
  EXPECT_EQ(summary["config"]["measure"]["steps"], 10);
  EXPECT_EQ(summary["config"]["sweep"]["size"], Json({"small", "xl"}));
  ASSERT_EQ(summary["cases"].size(), 2u);
  EXPECT_EQ(summary["cases"][0], as_read(ok_record()));
  const Json totals{{"planned", 2},
                    {"finished", 2},
                    {"by_status", {{"ok", 1}, {"oom", 1}}},
                    {"wall_s", 4.75},
                    {"lines",
                     {"size=small measure.warmup=5: ok step 1,243 ms, cv 0.8%",
                      "size=xl measure.warmup=5: oom: wanted 31,250 MiB of 24,000 MiB"}}};
  EXPECT_EQ(summary["summary"], totals);
}

TEST(Summary, TellsTheEnvironmentsThatItsRecordsName) {
  Json record = ok_record();
  record["environment"] = "0123";
  const Environments environments{{"0123", *record::Environment::parse(R"({"gpu": {"driver": "580.1"}})")},
                                  {"4567", kEnvironment}};
  const std::vector<record::CaseRecord> records{typed(record), typed(oom_record())};
  const std::string text = summary_json(sweep(), part(records), records, kEnvironment, kStamp, environments);
  EXPECT_EQ(Json::parse(text)["metadata"]["environments"], Json::parse(R"({"0123": {"gpu": {"driver": "580.1"}}})"));
  TemporaryFolder folder;
  put_file(folder.path() / "bench_x.json", text);
  const auto summary = read_summary_file(folder.path() / "bench_x.json");
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->environments.size(), 1u);
  EXPECT_EQ(summary->environments.at("0123").fact_or("gpu.driver", ""), "580.1");
}

TEST(Summary, AnExperimentThatDoesNotParseIsNamed) {
  experiment::Experiment experiment = sweep();
  experiment.resolved_toml = "schema = 1\nsteps = = 3\n";
  EXPECT_THROW(text_of(experiment, {}, kEnvironment), StorageError);
}

class ViewsOfARun : public ::testing::Test {
 protected:
  RunFolder create() {
    return RunFolder::create(folder_.path(), "sweep", sweep().resolved_toml, kEnvironmentText, *parse_utc(kStamp));
  }
  TemporaryFolder folder_;
};

TEST_F(ViewsOfARun, AreMadeFromTheRecordsAgainAndAgain) {
  RunFolder run = create();
  Json first_try = ok_record();
  first_try["status"] = "crashed";
  run.append(oom_record());
  run.append(first_try);
  run.append(ok_record());
  const Views views = write_views(run.path(), sweep());
  ASSERT_EQ(views.files.size(), 3u);
  ASSERT_EQ(views.records.size(), 2u);
  EXPECT_EQ(views.records[0].result.status, record::Status::ok);
  EXPECT_EQ(read_file(run.path() / "table.csv"), to_csv(views.full_table));
  EXPECT_TRUE(read_file(run.path() / "table.md").starts_with(to_markdown(views.table)));
  std::vector<std::string> before;
  for (const auto& file : views.files) {
    before.push_back(read_file(file));
    std::filesystem::remove(file);
  }
  const Views again = write_views(run.path(), sweep());
  ASSERT_EQ(again.files, views.files);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(read_file(again.files[i]), before[i]) << again.files[i];
}

TEST_F(ViewsOfARun, FollowTheFormatsAndColumnsAskedFor) {
  RunFolder run = create();
  run.append(ok_record());
  experiment::Experiment experiment = sweep();
  experiment.output.formats = {"csv"};
  experiment.output.columns = {"size", "step.n"};
  EXPECT_EQ(write_views(run.path(), experiment).files, std::vector<std::filesystem::path>{run.path() / "table.csv"});
  EXPECT_TRUE(read_file(run.path() / "table.csv").starts_with("size,step.n,run,experiment,"));
  EXPECT_FALSE(std::filesystem::exists(run.path() / "table.md"));
}

TEST_F(ViewsOfARun, ASummaryUnderAnEarlierNameGoes) {
  RunFolder run = create();
  Json gpu = ok_record();
  gpu["device"] = {{"kind", "cuda"}, {"name", "NVIDIA H200"}};
  write_views(run.path(), sweep());
  EXPECT_TRUE(std::filesystem::exists(run.path() / "bench_AMD_EPYC_9B14_rev._1_0gpu_20261120T120000Z.json"));
  run.append(gpu);
  write_views(run.path(), sweep());
  EXPECT_TRUE(std::filesystem::exists(run.path() / "bench_NVIDIA_H200_1gpu_20261120T120000Z.json"));
  EXPECT_FALSE(std::filesystem::exists(run.path() / "bench_AMD_EPYC_9B14_rev._1_0gpu_20261120T120000Z.json"));
}

TEST_F(ViewsOfARun, EachNumberOfRanksHasASummary) {
  RunFolder run = create();
  experiment::Experiment experiment = sweep();
  for (int i = 0; i < 2; ++i) {
    Json record = ok_record();
    record["index"] = i;
    record["ranks"] = i + 1;
    record["axes"]["run.ranks"] = i + 1;
    run.append(record);
    experiment.cases[static_cast<std::size_t>(i)].index = i;
    experiment.cases[static_cast<std::size_t>(i)].run.ranks = i + 1;
  }
  const std::string model = "bench_AMD_EPYC_9B14_rev._1_0gpu_";
  put_file(run.path() / (model + "8ranks_" + kStamp + ".json"), "{}");  // of cases that have other ranks since
  const Views views = write_views(run.path(), experiment);
  EXPECT_FALSE(std::filesystem::exists(run.path() / (model + "8ranks_" + kStamp + ".json")));
  ASSERT_EQ(views.files.size(), 4u) << "two tables, two summaries";
  const std::vector<std::string> names{model + kStamp + ".json", model + "2ranks_" + kStamp + ".json"};
  for (int i = 0; i < 2; ++i) {
    const Json summary = Json::parse(read_file(run.path() / names[static_cast<std::size_t>(i)]));
    ASSERT_EQ(summary["cases"].size(), 1u);
    EXPECT_EQ(summary["cases"][0]["index"], i);
    EXPECT_EQ(summary["metadata"]["ranks"], i + 1);
    EXPECT_EQ(summary["summary"]["planned"], 1);
    EXPECT_EQ(summary["summary"]["finished"], 1);
    EXPECT_EQ(summary["summary"]["lines"].size(), 1u);
  }
}

TEST_F(ViewsOfARun, GoToAFileThatTheUserNames) {
  RunFolder run = create();
  run.append(ok_record());
  experiment::Experiment experiment = sweep();
  experiment.output.formats = {};
  for (const auto& [name, format] : {std::pair("x.csv", ViewFormat::csv), std::pair("x.md", ViewFormat::markdown),
                                     std::pair("x.json", ViewFormat::json)}) {
    const std::filesystem::path file = folder_.path() / name;
    const Views views = write_views(run.path(), experiment, ViewFile{file, format});
    EXPECT_EQ(views.files, std::vector<std::filesystem::path>{file});
    EXPECT_EQ(views.named_file, file);
    if (format == ViewFormat::csv) {
      EXPECT_EQ(read_file(file), to_csv(views.full_table));
    }
    if (format == ViewFormat::markdown) {
      EXPECT_TRUE(read_file(file).starts_with(to_markdown(views.table)));
    }
  }
  EXPECT_EQ(Json::parse(read_file(folder_.path() / "x.json"))["cases"].size(), 1u);
}

// Tables that were shared had no note, no validity, and nothing to put runs together by.
TEST_F(ViewsOfARun, AreWholeWhenTheyAreSharedAlone) {
  RunFolder run = create();
  Json contended = ok_record();
  contended["validity"] = {{"verdict", "contended"}, {"text", "others"}};
  contended["notes"] = {"contended: other processes took 66%"};
  run.append(contended);
  run.append(oom_record());
  experiment::Experiment experiment = sweep();
  const Views views = write_views(run.path(), experiment);
  const auto cell = [&views](const char* column) {
    const auto& columns = views.full_table.columns;
    const auto place = std::find(columns.begin(), columns.end(), column);
    return place == columns.end() ? "no such column"
                                  : record::csv_text(views.full_table.rows[0][place - columns.begin()]);
  };
  EXPECT_EQ(cell("run"), run.path().filename().string());
  EXPECT_EQ(cell("experiment"), "sweep");
  EXPECT_EQ(cell("assay.version"), "1.0.0");
  EXPECT_EQ(cell("validity"), "contended");
  EXPECT_EQ(cell("verify"), "ok");
  EXPECT_EQ(cell("device.name"), "AMD EPYC");
  EXPECT_EQ(cell("batch_size"), "4096") << "a parameter that is not swept";
  EXPECT_EQ(cell("run.seed"), "1234") << "a setting that is not swept";
  EXPECT_EQ(cell("notes"), "contended: other processes took 66%");
  EXPECT_EQ(cell("straggler.rank"), "no such column");
  const std::string page = read_file(run.path() / "table.md");
  for (const char* part : {"validity", "contended: other processes took 66%", "oom: wanted 31,250 MiB", "of sweep, on ",
                           "AMD EPYC", "assay 1.0.0"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
}

TEST_F(ViewsOfARun, AColumnThatNoProgramReportedIsNamed) {
  RunFolder run = create();
  run.append(ok_record());
  experiment::Experiment experiment = sweep();
  experiment.output.columns = experiment.output.reported_columns = {"loss", "ratio", "los.mean", "other"};
  EXPECT_EQ(write_views(run.path(), experiment).warnings,
            (std::vector<std::string>{
                "column 'loss' of [output] columns is empty: no program reported it; did you mean 'loss.mean'?",
                "column 'los.mean' of [output] columns is empty: no program reported it; did you mean 'loss.mean'?",
                "column 'other' of [output] columns is empty: no program reported it"}));
}

TEST_F(ViewsOfARun, ATornLineIsPassedOn) {
  RunFolder run = create();
  run.append(ok_record());
  put_file(run.cases_path(), read_file(run.cases_path()) + "{\"ind");
  const Views views = write_views(run.path(), sweep());
  EXPECT_EQ(views.records.size(), 1u);
  EXPECT_EQ(views.warnings.size(), 1u);
}

}  // namespace
}  // namespace assay::host::results
