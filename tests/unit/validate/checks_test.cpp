// The table of checks, and docs/validate.md, which lists them.
#include "validate/checks.hpp"

#include "common/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace assay::host::validate {
namespace {

TEST(Checks, HaveEachANameOfItsOwnAndWhatToSay) {
  std::set<std::string> names;
  for (const CheckRow& row : all_checks()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(check_named(row.name), row.check);
    EXPECT_EQ(&row_of(row.check), &row);
    EXPECT_GE(row.level, 1);
    EXPECT_LE(row.level, highest_level);
    EXPECT_NE(std::string(row.sentence), "");
    EXPECT_NE(std::string(row.remedy), "");
    EXPECT_LE(std::string(row.name).size(), 19u) << "wider than its column of the table";
  }
  EXPECT_EQ(check_named("no.such_check"), std::nullopt);
}

TEST(Checks, AreListedOnTheirPageInTheirWords) {
  const std::string page = read_file(VALIDATE_PAGE);
  for (const CheckRow& row : all_checks()) {
    const std::string line = fmt::format("\n| `{}`{} | {} | {} |\n", row.name,
                                         row.severity == Severity::error ? "" : ", warning", row.sentence, row.remedy);
    EXPECT_NE(page.find(line), std::string::npos) << "docs/validate.md lacks" << line;
  }
}

}  // namespace
}  // namespace assay::host::validate
