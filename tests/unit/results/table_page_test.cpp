#include "results/table_page.hpp"

#include "common/text_format.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

RunSource source_of_run() {
  RunSource source;
  source.run = "20261120T120000Z-9f2c";
  source.experiment = "sizes";
  source.environment =
      record::Environment::parse(R"({"assay": {"version": "1.0.0", "revision": "1a2b3c4"}, "os": {"hostname": "n1"}})");
  return source;
}

TEST(TablePage, TellsProblemsNotesAndOrigin) {
  const std::vector<record::CaseRecord> records{ok_record(), oom_record()};
  const std::string page = table_page(make_table({"size", "step.n"}, records), records, {"oom"}, source_of_run());
  EXPECT_EQ(page,
            "| size  | step.n | status |\n"
            "| ----- | -----: | ------ |\n"
            "| small |     10 | ok     |\n"
            "| xl    |        | oom    |\n"
            "\n"
            "- case 3 (size=xl measure.warmup=5): oom (expected): wanted 31,250 MiB of 24,000 MiB [setup, phase "
            "forward, rank 1]\n"
            "- case 1 (size=small measure.warmup=5): note: one, with comma\n"
            "- case 1 (size=small measure.warmup=5): note: two\n"
            "\n"
            "Run 20261120T120000Z-9f2c of sizes, on n1 (AMD EPYC), assay 1.0.0 (revision 1a2b3c4).\n");
}

TEST(TablePage, WhatIsNotKnownOfTheOriginIsLeftOut) {
  Json record = ok_record();
  record["notes"] = Json::array();
  RunSource source;
  source.run = "x";
  EXPECT_EQ(below_table({record}, {}, source), "Run x, on AMD EPYC.\n");
  record["host"] = "n2";  // of the record itself, before that of an environment
  source.environment = source_of_run().environment;
  EXPECT_EQ(below_table({record}, {}, source), "Run x, on n2 (AMD EPYC), assay 1.0.0 (revision 1a2b3c4).\n");
}

TEST(TablePage, ARecordOfAnotherEnvironmentIsNotTakenForOneOfTheRuns) {
  RunSource source = source_of_run();
  Json record = ok_record();
  record["environment"] = "00ff";
  EXPECT_TRUE(source.cell_of(typed(record), "assay.version")->empty());
  source.environments.emplace("00ff", *record::Environment::parse(R"({"assay": {"version": "1.1.0"}})"));
  EXPECT_EQ(source.cell_of(typed(record), "assay.version"), record::text_cell("1.1.0"));
}

// A case of another size, which takes twice as long.
Json large_record() {
  Json record = ok_record();
  record["params"]["size"] = record["axes"]["size"] = "large";
  record["phases"]["step"]["mean_ms"] = 2486.0;
  return record;
}

TEST(TableOnTerminal, WhatAllRowsShareIsSaidOnceWhereThereIsTooLittleRoom) {
  const Table table = make_table({"size", "step.mean_ms", "verify", "device"}, {ok_record(), large_record()});
  EXPECT_EQ(table_on_terminal(table, 80), to_terminal(table, 80));
  EXPECT_EQ(table_on_terminal(table, 24),
            "in both rows: verify\n"
            "  ok, device cpu\n"
            "size   step.mean_ms\n"
            "─────  ────────────\n"
            "small         1,243\n"
            "large         2,486\n");
  // Of one row everything is alike: its figures stay.
  EXPECT_EQ(table_on_terminal(make_table({"size", "step.mean_ms", "verify", "device"}, {ok_record()}), 24),
            "verify ok, device cpu\n"
            "size   step.mean_ms\n"
            "─────  ────────────\n"
            "small         1,243\n");
}

TEST(TableOnTerminal, WhatIsTooWideIsSeveralTables) {
  const Table table = make_table({"size", "step.mean_ms", "step.n", "hash"}, {ok_record(), large_record()});
  const std::string text = table_on_terminal(table, 16);
  std::size_t tables = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(display_width(text.substr(begin, end - begin)), 20u) << text;
    tables += text.compare(begin, 5, "large") == 0 ? 1 : 0;
    begin = end + 1;
  }
  EXPECT_GE(tables, 1u) << text;
}

TEST(TableOnTerminal, WhereACommandShowsTheRestTheFirstTableIsEnough) {
  Json partial = large_record(), oom = large_record();
  partial["verify"]["status"] = "partial";
  oom["params"]["size"] = oom["axes"]["size"] = "xl";
  oom["status"] = "oom";
  const Table table = make_table({"size", "step.mean_ms", "step.n", "verify", "status"}, {ok_record(), partial, oom});
  EXPECT_EQ(table_on_terminal(table, 26, {}, "assay table RUN"),
            "in all 3 rows: step.n 10\n"
            "                   step\n"
            "size   status  .mean_ms\n"
            "─────  ──────  ────────\n"
            "small  ok         1,243\n"
            "large  ok         2,486\n"
            "xl     oom        2,486\n"
            "no room for verify:\n"
            "  assay table RUN has it\n");
}

TEST(TableOnTerminal, WhatDiffersKeepsItsColumn) {
  Json partial = large_record();
  partial["verify"]["status"] = "partial";
  const Table table = make_table({"size", "step.mean_ms", "verify", "device"}, {ok_record(), partial});
  EXPECT_EQ(table_on_terminal(table, 24),
            "in both rows: device\n"
            "  cpu\n"
            "           step\n"
            "size   .mean_ms  verify\n"
            "─────  ────────  ───────\n"
            "small     1,243  ok\n"
            "large     2,486  partial\n");
  EXPECT_EQ(table_on_terminal(make_table({"hash", "verify"}, {ok_record(), partial}), 8),
            "in both rows: hash\n"
            "  9f2c0a1b7d3e4f55\n"
            "verify\n"
            "───────\n"
            "ok\n"
            "partial\n");
}

TEST(TableOnTerminal, RowsThatNoColumnTellsApartHaveNumbers) {
  const Table table = make_table({"step.mean_ms", "size", "verify"}, {ok_record(), large_record()});
  EXPECT_EQ(table_on_terminal(table, 14),
            "in both rows: verify\n"
            "  ok\n"
            "         step\n"
            "row  .mean_ms\n"
            "───  ────────\n"
            "  1     1,243\n"
            "  2     2,486\n"
            "\n"
            "row  size\n"
            "───  ─────\n"
            "  1  small\n"
            "  2  large\n")
      << "no column within half of the width tells them apart";
}

}  // namespace
}  // namespace assay::host::results
