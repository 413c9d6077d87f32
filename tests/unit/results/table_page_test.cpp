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

TEST(TableOnTerminal, WhatAllRowsShareLeavesRoomWhereThereIsTooLittle) {
  const std::vector<record::CaseRecord> records{ok_record(), ok_record()};
  const Table table = make_table({"size", "step.mean_ms", "verify", "device"}, records);
  EXPECT_EQ(table_on_terminal(table, 80), to_terminal(table, 80));
  EXPECT_EQ(table_on_terminal(table, 18),
            "           step\n"
            "size   .mean_ms\n"
            "─────  ────────\n"
            "small     1,243\n"
            "small     1,243\n"
            "each case: verify ok, device cpu\n");
}

TEST(TableOnTerminal, WhatIsTooWideIsSeveralTables) {
  Json other = ok_record();
  other["params"]["size"] = other["axes"]["size"] = "large";
  const Table table = make_table({"size", "step.mean_ms", "step.n", "hash"}, {ok_record(), other});
  const std::string text = table_on_terminal(table, 24);
  std::size_t tables = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(display_width(text.substr(begin, end - begin)), 24u) << text;
    tables += text.compare(begin, 5, "large") == 0 ? 1 : 0;
    begin = end + 1;
  }
  EXPECT_GE(tables, 2u) << text;
}

TEST(TableOnTerminal, WhatDiffersKeepsItsColumn) {
  Json partial = ok_record();
  partial["verify"]["status"] = "partial";
  const Table table = make_table({"size", "step.mean_ms", "verify", "device"}, {ok_record(), partial});
  EXPECT_EQ(table_on_terminal(table, 24),
            "           step\n"
            "size   .mean_ms  verify\n"
            "─────  ────────  ───────\n"
            "small     1,243  ok\n"
            "small     1,243  partial\n"
            "each case: device cpu\n");
  EXPECT_EQ(table_on_terminal(table, 20),
            "                step\n"
            "row  size   .mean_ms\n"
            "───  ─────  ────────\n"
            "  1  small     1,243\n"
            "  2  small     1,243\n"
            "\n"
            "row  verify\n"
            "───  ───────\n"
            "  1  ok\n"
            "  2  partial\n"
            "each case: device cpu\n")
      << "no column within half of the width tells the rows apart";
}

}  // namespace
}  // namespace assay::host::results
