#include "results/table.hpp"

#include "common/text_format.hpp"
#include "experiment/experiment.hpp"
#include "results/case_text.hpp"
#include "results/default_columns.hpp"
#include "results/table_page.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace assay::host::results {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Table, CsvIsExactAndQuoted) {
  Json record = ok_record();
  record["params"]["size"] = record["axes"]["size"] = "a \"b\", c";
  EXPECT_EQ(to_csv(make_table({"size", "parameters", "step.mean_ms", "notes", "status"}, {record, oom_record()})),
            "size,parameters,step.mean_ms,notes,status\n"
            "\"a \"\"b\"\", c\",128625408,1243.25,\"one, with comma; two\",ok\n"
            "xl,,,,oom\n");
  EXPECT_EQ(to_csv(make_table({"rank"}, {ok_record()})), "rank\n\"\"\n");
}

TEST(Table, JsonHasAnObjectForEachRow) {
  const Json rows =
      Json::parse(to_json(make_table({"size", "causal", "parameters", "step.mean_ms"}, {ok_record(), oom_record()})));
  EXPECT_EQ(rows, Json::parse(R"([{"size": "small", "causal": true, "parameters": 128625408, "step.mean_ms": 1243.25,
                                   "status": "ok"},
                                  {"size": "xl", "causal": null, "parameters": null, "step.mean_ms": null,
                                   "status": "oom"}])"));
}

TEST(Table, MarkdownIsAlignedByScreenWidth) {
  Json record = ok_record();
  record["axes"]["size"] = "模型|1";
  EXPECT_EQ(to_markdown(make_table({"size", "parameters", "step.mean_ms", "status"}, {record, oom_record()})),
            "| size    |  parameters | step.mean_ms | status |\n"
            "| ------- | ----------: | -----------: | ------ |\n"
            "| 模型\\|1 | 128,625,408 |        1,243 | ok     |\n"
            "| xl      |             |              | oom    |\n");
}

TEST(Table, ARowWithoutFiguresSaysWhyEvenWhereNobodyAsked) {
  EXPECT_EQ(make_table({"size"}, {ok_record()}).columns, std::vector<std::string>{"size"});
  EXPECT_EQ(make_table({"size"}, {ok_record(), oom_record()}).columns, (std::vector<std::string>{"size", "status"}));
}

TEST(Table, TerminalOnOneHeaderLineWhereItFits) {
  EXPECT_EQ(to_terminal(make_table({"size", "step.mean_ms", "status"}, {ok_record(), oom_record()}), 80),
            "size   step.mean_ms  status\n"
            "─────  ────────────  ──────\n"
            "small         1,243  ok\n"
            "xl                   oom\n");
}

TEST(Table, TerminalBreaksHeadersAtDotsToFit) {
  EXPECT_EQ(to_terminal(make_table({"size", "step.mean_ms", "status"}, {ok_record(), oom_record()}), 26),
            "           step\n"
            "size   .mean_ms  status\n"
            "─────  ────────  ──────\n"
            "small     1,243  ok\n"
            "xl               oom\n");
}

TEST(Table, TerminalBreaksSumsOfPhasesToFit) {
  EXPECT_EQ(to_terminal(make_table({"size", "forward+backward.mean_ms"}, {ok_record()}), 20),
            "         forward\n"
            "       +backward\n"
            "size    .mean_ms\n"
            "─────  ─────────\n"
            "small      800.5\n");
}

TEST(Table, DefaultsOfATrainingSweepFit120Columns) {
  std::vector<record::CaseRecord> records;
  for (const char* pass : {"forward", "forward_backward", "train_step"}) {
    Json record = ok_record();
    record["axes"] = {{"size", "small"}, {"pass", pass}};
    record["metrics"].erase("ratio");
    record["phases"]["optimizer"] = record["phases"]["backward"];
    records.push_back(record);
  }
  experiment::Experiment experiment;
  const Table table = make_table(default_columns(experiment, records), records);
  ASSERT_EQ(table.columns.size(), 14u);
  for (const std::string& line : lines_of(table_on_terminal(table, 120))) EXPECT_LE(display_width(line), 120u) << line;
}

TEST(Table, PeopleReadUnitsThatFit) {
  Table table{{"step.mean_ms", "bytes_per_s", "memory.peak_mib", "gbytes_per_s"}, {}};
  for (const double factor : {1.0, 0.5})
    table.rows.push_back({record::number_cell(0.001951 * factor), record::number_cell(33590118142 * factor),
                          record::number_cell(2e5 * factor), record::number_cell(3e7 * factor)});
  EXPECT_EQ(to_terminal(table, 120),
            "step.mean_us  Gbytes_per_s  memory.peak_gib  gbytes_per_s\n"
            "────────────  ────────────  ───────────────  ────────────\n"
            "       1.951         33.59            195.3    30,000,000\n"
            "      0.9755         16.80            97.66    15,000,000\n");
  EXPECT_TRUE(to_markdown(table).starts_with("| step.mean_us | Gbytes_per_s |")) << to_markdown(table);
  EXPECT_TRUE(to_csv(table).starts_with("step.mean_ms,bytes_per_s,")) << to_csv(table);
  table.rows.push_back({record::number_cell(1.0), {}, {}, {}});
  EXPECT_TRUE(to_terminal(table, 120).starts_with("step.mean_ms  Gbytes_per_s")) << "one unit a column";
}

TEST(Table, CsvHasALineForEachRow) {
  Json record = oom_record();
  record["notes"] = {"two\nlines"};
  EXPECT_EQ(to_csv(make_table({"reason", "notes"}, {record})),
            "reason,notes,status\n\"wanted 31,250 MiB of 24,000 MiB\",two lines,oom\n");
}

TEST(Table, NoRecordsIsAHeader) {
  EXPECT_EQ(to_csv(make_table({"size", "status"}, {})), "size,status\n");
  EXPECT_EQ(lines_of(to_markdown(make_table({"size", "status"}, {}))).size(), 2u);
  EXPECT_EQ(lines_of(to_terminal(make_table({"size", "status"}, {}))).size(), 2u);
}

TEST(CaseText, ProblemsSayWhereAndWhy) {
  Json crashed = oom_record();
  crashed["index"] = 3;
  crashed["status"] = "crashed";
  crashed["reason"] = "";
  crashed["stage"] = crashed["phase"] = "";
  crashed["rank"] = nullptr;
  EXPECT_EQ(
      problem_lines({ok_record(), oom_record(), crashed}, {"oom"}),
      (std::vector<std::string>{
          "case 3 (size=xl measure.warmup=5): oom (expected): wanted 31,250 MiB of 24,000 MiB [setup, phase forward, "
          "rank 1]",
          "case 4 (size=xl measure.warmup=5): crashed: no reason was given"}));
  EXPECT_TRUE(problem_lines({ok_record()}, {}).empty());
  crashed["reason"] = "ended with 1:\nTraceback:\n  File \"x.py\"\n    import nothing\n";
  EXPECT_EQ(problem_lines({crashed}, {}),
            std::vector<std::string>{"case 4 (size=xl measure.warmup=5): crashed: ended with 1: | Traceback: | File "
                                     "\"x.py\" | import nothing"});
}

TEST(CaseText, SummaryAndLabel) {
  EXPECT_EQ(case_summary(ok_record()), "ok step 1,243 ms, cv 0.8%");
  Json in_part = ok_record();
  in_part["verify"]["status"] = "partial";
  EXPECT_EQ(case_summary(in_part), "ok step 1,243 ms, cv 0.8%, verified in part");
  Json of_one_step = ok_record();
  of_one_step["phases"]["step"]["n"] = 1;
  of_one_step["phases"]["step"]["cv"] = 0.0;
  EXPECT_EQ(case_summary(of_one_step), "ok step 1,243 ms") << "one step has no scatter";
  EXPECT_EQ(case_summary(oom_record()), "oom: wanted 31,250 MiB of 24,000 MiB");
  EXPECT_EQ(case_label(typed(ok_record()).identity.axes), "size=small measure.warmup=5");
  const std::vector<std::pair<std::string, Value>> axes{{"size", std::string("xl")}, {"lr", 0.0001}};
  EXPECT_EQ(case_label(axes), "size=xl lr=0.0001");
}

}  // namespace
}  // namespace assay::host::results
