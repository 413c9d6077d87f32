// Where a report may go.
#include "report/report_file.hpp"

#include "report/page.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

std::string refusal(const std::filesystem::path& file, bool replaces_any = false) {
  try {
    check_output(file, replaces_any);
  } catch (const OutputError& e) {
    return e.what();
  }
  return "";
}

TEST(ReportFile, AFolderIsMadeAndAReportReplaced) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(refusal(folder / "new/deeper/report.html"), "");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "new/deeper"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new/deeper/report.html"));
  test::put_file(folder / "old.html", std::string(page_mark) + "<html>");
  EXPECT_EQ(refusal(folder / "old.html"), "");
}

TEST(ReportFile, WhatIsNoReportStays) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "cases.jsonl", "{}");
  EXPECT_NE(refusal(folder / "cases.jsonl").find("exists and is not a report; give another name by -o, or --force"),
            std::string::npos);
  EXPECT_EQ(refusal(folder / "cases.jsonl", true), "");
  EXPECT_NE(refusal(folder.path(), true).find("is a folder; give the name of a file, such as "), std::string::npos);
  EXPECT_NE(refusal(folder / "cases.jsonl/report.html").find("cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace assay::host::report
