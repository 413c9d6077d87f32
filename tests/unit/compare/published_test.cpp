// The published figures in the repository: they are read, and stand beside what was measured here.
#include "compare/comparison.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;
const fs::path kPublished = ASSAY_PUBLISHED;

std::vector<fs::path> published_tables() {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::recursive_directory_iterator(kPublished))
    if (entry.path().filename() == "cases.jsonl" && entry.path().string().find("/report-") != std::string::npos)
      tables.push_back(entry.path().parent_path());
  return tables;
}

TEST(Published, EveryTableIsReadWithoutAWarning) {
  const std::vector<fs::path> tables = published_tables();
  EXPECT_GE(tables.size(), 20u);
  for (const fs::path& table : tables) {
    const Sides sides = read_sides({table.string()}, FolderOfRuns::sides);
    EXPECT_TRUE(sides.warnings.empty()) << sides.warnings[0];
    ASSERT_EQ(sides.sides.size(), 1u);
    EXPECT_FALSE(sides.sides[0].runs[0].records.empty()) << table;
    for (const record::CaseRecord& record : sides.sides[0].runs[0].records) {
      ASSERT_TRUE(record.result.notes && !record.result.notes->empty()) << table;
      EXPECT_TRUE(record.result.notes->front().starts_with("published: report 00")) << table;
    }
    EXPECT_TRUE(fs::exists(table.parent_path() / "README.md")) << table;
  }
}

TEST(Published, ALaptopBesideAnH200) {
  Sides sides = read_sides({(kPublished / "report-001-rtx-4090-laptop/decoder-sizes").string(),
                            (kPublished / "h200-2026-11-20/decoder-sizes").string()},
                           FolderOfRuns::sides);
  const Comparison comparison = compare_sides(std::move(sides.sides), {});
  const auto& cases = comparison.metrics[0].cases;
  ASSERT_EQ(cases.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cases[i].entries[1].verdict, "faster");
    EXPECT_FALSE(cases[i].entries[1].by_samples);
  }
  EXPECT_EQ(cases[3].entries[1].reason, "A: oom: out of memory");
  ASSERT_FALSE(comparison.differences.items.empty());
  EXPECT_EQ(comparison.differences.items[0].item, "device.name");
}

TEST(Published, AnotherContextIsRefused) {
  Sides sides = read_sides({(kPublished / "report-002-rtx-pro-6000/decoder-fp32").string(),
                            (kPublished / "h200-2026-11-20/decoder-sizes").string()},
                           FolderOfRuns::sides);
  const Comparison comparison = compare_sides(std::move(sides.sides), {});
  ASSERT_FALSE(comparison.metrics[0].cases.empty());
  for (const ComparedCase& c : comparison.metrics[0].cases) {
    EXPECT_EQ(c.entries[1].kind, Entry::Kind::refused);
    EXPECT_NE(c.entries[1].reason.find("context_length 256 / 512"), std::string::npos) << c.entries[1].reason;
  }
}

}  // namespace
}  // namespace assay::host::compare
