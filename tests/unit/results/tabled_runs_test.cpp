// Tables of several runs, made later from what they have left.
#include "results/tabled_runs.hpp"

#include "results/column_choice.hpp"
#include "results/find_runs.hpp"
#include "temporary_folder.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class TabledRuns : public ::testing::Test {
 protected:
  std::string put_run(const std::string& name, const std::vector<Json>& records, const std::string& host = "n1") {
    const fs::path run = folder_.path() / "sizes" / name;
    fs::create_directories(run);
    std::string lines;
    for (const Json& record : records) lines += record.dump() + "\n";
    put_file(run / "cases.jsonl", lines);
    put_file(run / "environment.json", Json{{"os", {{"hostname", host}}}, {"assay", {{"version", "1.0.0"}}}}.dump());
    return run.string();
  }
  std::vector<TabledRun> read(const std::vector<std::string>& given) { return read_tabled_runs(given, warnings_); }
  template <class Error>
  static std::string complaint(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
  const std::string first_ = "20261120T120000Z-0001", second_ = "20261121T120000Z-0002";
};

// As `results/x/*` of a shell.
TEST_F(TabledRuns, ALinkToARunThatIsGivenAsWellCountsOnce) {
  const std::string run = put_run(first_, {ok_record()}), latest = (folder_.path() / "sizes/latest").string();
  fs::create_directory_symlink(first_, latest);
  EXPECT_EQ(read({run, latest}).size(), 1u);
  EXPECT_EQ(warnings_, Names{latest + " is a link to " + run + ", which is given as well: it counts once"});
  EXPECT_EQ(read({latest}).size(), 1u);
}

TEST_F(TabledRuns, RowsOfSeveralRunsAreToldApart) {
  Json larger = ok_record();
  larger["params"]["batch_size"] = 8192;
  put_run(first_, {ok_record()});
  put_run(second_, {larger}, "n2");
  fs::create_directory_symlink(first_, folder_.path() / "sizes/latest");
  const auto runs = read({(folder_.path() / "sizes").string()});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].source.experiment, "sizes");
  const Table table = table_of_runs(default_columns_of_runs(runs), runs);
  EXPECT_EQ(Names(table.columns.begin(), table.columns.begin() + 4), (Names{"run", "host", "batch_size", "size"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0], record::text_cell(first_));
  EXPECT_EQ(table.rows[1][1], record::text_cell("n2"));
  EXPECT_EQ(record::csv_text(table.rows[1][2]), "8192");
  // The link has the name of the run that it points at.
  EXPECT_EQ(read({(folder_.path() / "sizes/latest").string()})[0].source.run, first_);
}

TEST_F(TabledRuns, SeveralWorkloadsOfOneRunAreAColumn) {
  Json other = ok_record();
  other["workload"] = "google-benchmark:other", other["case"] = 7;
  const auto one = read({put_run(first_, {ok_record()})}), two = read({put_run(second_, {ok_record(), other})});
  EXPECT_NE(default_columns_of_runs(one).front(), "workload");
  EXPECT_EQ(default_columns_of_runs(two).front(), "workload");
}

TEST_F(TabledRuns, TheLastRecordOfACaseCounts) {
  Json crashed = ok_record();
  crashed["status"] = "crashed";
  const auto runs = read({put_run(first_, {crashed, oom_record(), ok_record()})});
  const Table table = table_of_runs({"size", "status"}, runs);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1][1], record::text_cell("ok"));
}

TEST_F(TabledRuns, ASummaryIsARun) {
  const fs::path file = folder_.path() / "bench_X_0gpu_20261120T120000Z.json";
  put_file(file, Json{{"schema", 1},
                      {"metadata", {{"experiment", "sizes"}, {"environment", {{"os", {{"hostname", "n7"}}}}}}},
                      {"cases", Json::array({ok_record()})}}
                     .dump());
  const Table table = table_of_runs({"run", "experiment", "host"}, read({file.string()}));
  EXPECT_EQ(to_csv(table), "run,experiment,host\nbench_X_0gpu_20261120T120000Z,sizes,n7\n");
  put_file(file, "[]");
  EXPECT_NE(complaint<NoRunError>([&] { read({file.string()}); }).find("has no records"), std::string::npos);
  EXPECT_NE(complaint<NoRunError>([&] { read({"/not/there"}); }).find("/not/there is not there; expected a run folder"),
            std::string::npos);
}

TEST_F(TabledRuns, PatternsAllAndDefaultChooseColumns) {
  const auto runs = read({put_run(first_, {ok_record()})});
  EXPECT_EQ(chosen_columns({"size", "forward.*"}, runs),
            (Names{"size", "forward.mean_ms", "forward.std_ms", "forward.cv", "forward.cv_percent", "forward.mean_s",
                   "forward.std_s", "forward.n"}));
  EXPECT_EQ(chosen_columns({"memory.before_step.*"}, runs),
            (Names{"memory.before_step.mib", "memory.before_step.parameters.mib"}));
  EXPECT_EQ(chosen_columns({"default"}, runs), default_columns_of_runs(runs));
  const Names all = chosen_columns({"all"}, runs);
  for (const char* name : {"run", "experiment", "size", "batch_size", "run.seed", "step.mean_ms", "tokens_per_s",
                           "host", "memory.after_setup.mib", "notes", "assay.version"})
    EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name;
  for (const char* name : {"mfu", "reason", "files.host", "telemetry.energy_j"})
    EXPECT_EQ(std::find(all.begin(), all.end(), name), all.end()) << name << " has no value";
  EXPECT_EQ(chosen_columns({"forward+backward.mean_ms", "mfu", "memory.x.mib"}, runs),
            (Names{"forward+backward.mean_ms", "mfu", "memory.x.mib"}))
      << "columns that a record may have, whether or not these do";
}

TEST_F(TabledRuns, AnUnknownColumnIsRefusedWithANearName) {
  const auto runs = read({put_run(first_, {ok_record()})});
  const auto refusal = [&runs](const std::string& name) {
    return complaint<UnknownColumnError>([&] { chosen_columns({name}, runs); });
  };
  EXPECT_EQ(refusal("forwrad.mean_ms"),
            "no record has a column 'forwrad.mean_ms'; expected a name (docs/record.md lists them), a pattern such as "
            "'step.*', all, or default; did you mean 'forward.mean_ms'?");
  EXPECT_NE(refusal("mfu_*x"), "");
  EXPECT_NE(refusal("speedup").find("[output] relative_to"), std::string::npos);
}

TEST_F(TabledRuns, FiltersKeepRows) {
  auto runs = read({put_run(first_, {ok_record(), oom_record()}), put_run(second_, {ok_record()})});
  keep_matching(runs, {"size=small", "run=" + second_});
  EXPECT_TRUE(runs[0].records.empty());
  EXPECT_EQ(runs[1].records.size(), 1u);
  const auto refusal = [&runs](const std::string& filter) {
    return complaint<std::runtime_error>([&] { keep_matching(runs, {filter}); });
  };
  EXPECT_NE(refusal("sise=small").find("did you mean 'size'?"), std::string::npos);
  EXPECT_NE(refusal("size").find("expected column=value"), std::string::npos);
  EXPECT_EQ(refusal("size=smal"),
            "--filter size=smal: no row that is left has this; there is small; did you mean 'small'?");
}

TEST_F(TabledRuns, FiltersTakeListsAndOrders) {
  const std::string run = put_run(first_, {ok_record(), oom_record()});
  const auto left = [&](const std::vector<std::string>& filters) {
    auto runs = read({run});
    keep_matching(runs, filters);
    return runs[0].records.size();
  };
  EXPECT_EQ(left({"status=ok,oom"}), 2u);
  EXPECT_EQ(left({"status!=ok"}), 1u);
  EXPECT_EQ(left({"step.mean_ms>0"}), 1u) << "a row without the figure is on no side of a bound";
  const auto refusal = [&](const char* filter) { return complaint<FilterError>([&] { left({filter}); }); };
  EXPECT_EQ(refusal("status!=ok,oom"), "--filter status!=ok,oom: no row that is left has this; there are ok, oom");
  EXPECT_NE(refusal("step.mean_ms<fast").find("'fast' is no number"), std::string::npos);
}

}  // namespace
}  // namespace assay::host::results
