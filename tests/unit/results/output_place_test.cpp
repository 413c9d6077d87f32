#include "results/output_place.hpp"

#include <gtest/gtest.h>

#include "common/usage_error.hpp"

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

bool is_folder_place(const std::string& given) { return std::holds_alternative<fs::path>(output_place(given)); }

TEST(OutputPlace, IsAFileByItsEndAlone) {
  EXPECT_EQ(std::get<ViewFile>(output_place("a/b.CSV")).format, ViewFormat::csv);
  EXPECT_EQ(std::get<ViewFile>(output_place("b.md")).format, ViewFormat::markdown);
  EXPECT_EQ(std::get<ViewFile>(output_place("b.json")).format, ViewFormat::json);
  EXPECT_TRUE(is_folder_place("results"));
  EXPECT_TRUE(is_folder_place("v1.2"));
  EXPECT_TRUE(is_folder_place("b.csv/"));
}

TEST(OutputPlace, IsNoFileThatARunDoesNotWrite) {
  EXPECT_THROW(output_place(""), UsageError);
  EXPECT_THROW(output_place("table.xlsx"), UsageError);
  EXPECT_THROW(output_place("cases.jsonl"), UsageError);
}

}  // namespace
}  // namespace assay::host::results
