#include "results/reader.hpp"

#include "temporary_folder.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

class Reader : public ::testing::Test {
 protected:
  CasesFile read(const std::string& text) {
    put_file(folder_.path() / "cases.jsonl", text);
    return read_cases(folder_.path() / "cases.jsonl");
  }
  TemporaryFolder folder_;
  const std::string line_ = ok_record().dump();
};

TEST_F(Reader, NoFileHasNoRecords) {
  const CasesFile cases = read_cases(folder_.path() / "none.jsonl");
  EXPECT_TRUE(cases.records.empty());
  EXPECT_FALSE(cases.torn);
}

TEST_F(Reader, WholeFile) {
  const CasesFile cases = read(line_ + "\n" + oom_record().dump() + "\n");
  ASSERT_EQ(cases.records.size(), 2u);
  EXPECT_EQ(record::to_json(cases.records[0]), as_read(ok_record()));
  EXPECT_EQ(cases.records[1].result.status, record::Status::oom);
  EXPECT_FALSE(cases.torn);
  EXPECT_TRUE(cases.warnings.empty());
}

TEST_F(Reader, ALineThatIsNestedTooDeepIsNoRecord) {
  const std::string deep =
      "{\"status\": \"ok\", \"metrics\": " + std::string(100000, '[') + std::string(100000, ']') + "}";
  const CasesFile cases = read(deep + "\n" + line_ + "\n");
  EXPECT_EQ(cases.records.size(), 1u);
  ASSERT_EQ(cases.warnings.size(), 1u);
  EXPECT_NE(cases.warnings[0].find("cases.jsonl:1: "), std::string::npos) << cases.warnings[0];
  EXPECT_FALSE(record::Environment::parse("{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}"));
}

TEST_F(Reader, ATornLastLineDoesNotCountAndIsTold) {
  for (std::size_t length : {std::size_t{1}, line_.size() / 2, line_.size() - 1}) {
    const CasesFile cases = read(line_ + "\n" + line_.substr(0, length));
    EXPECT_EQ(cases.records.size(), 1u);
    EXPECT_TRUE(cases.torn);
    EXPECT_EQ(cases.whole_bytes, line_.size() + 1);
    ASSERT_EQ(cases.warnings.size(), 1u);
    EXPECT_NE(cases.warnings[0].find("cases.jsonl:2: the last line is torn"), std::string::npos) << cases.warnings[0];
  }
}

TEST_F(Reader, ALastLineThatLacksOnlyItsEndCounts) {
  const CasesFile cases = read(line_ + "\n" + line_);
  EXPECT_EQ(cases.records.size(), 2u);
  EXPECT_FALSE(cases.torn);
  EXPECT_TRUE(cases.newline_missing);
}

TEST_F(Reader, GarbageInTheMiddleIsNamed) {
  const CasesFile cases = read(line_ + "\n" + std::string(8, '\0') + "\n[1]\n{\"index\": 1}\n" + line_ + "\n");
  EXPECT_EQ(cases.records.size(), 2u);
  EXPECT_FALSE(cases.torn);
  ASSERT_EQ(cases.warnings.size(), 3u);
  EXPECT_NE(cases.warnings[0].find("cases.jsonl:2: 8 bytes"), std::string::npos) << cases.warnings[0];
}

TEST_F(Reader, NewestRunIsTheYoungestThatCanBeResumed) {
  const auto& dir = folder_.path();
  EXPECT_TRUE(runs_newest_first(dir, "x").empty());
  for (const char* run : {"20261120T120000Z-00aa", "20261120T120001Z-00ab", "20261120T120001Z-00aa"})
    put_file(dir / "x" / run / "experiment.toml", ""), put_file(dir / "x" / run / "cases.jsonl", "{}\n");
  std::filesystem::create_directories(dir / "x/20261121T120000Z-ffff");  // killed before it had an experiment.toml
  put_file(dir / "x/20261121T120000Z-fffe/experiment.toml", "");         // and before it had a record
  put_file(dir / "x/20261121T120000Z-fffe/cases.jsonl", "");
  put_file(dir / "x/notes/experiment.toml", "");
  EXPECT_EQ(runs_newest_first(dir, "x").at(0), dir / "x/20261120T120001Z-00ab");
  std::filesystem::create_directory_symlink("20261120T120001Z-00aa", dir / "x/latest");
  EXPECT_EQ(runs_newest_first(dir, "x").at(0), dir / "x/20261120T120001Z-00aa");
  std::filesystem::remove_all(dir / "x/20261120T120001Z-00aa");  // and `latest` leads nowhere
  EXPECT_EQ(runs_newest_first(dir, "x").at(0), dir / "x/20261120T120001Z-00ab");
}

TEST_F(Reader, StampOfARun) {
  EXPECT_EQ(stamp_of_run("a/20261120T120000Z-9f2c"), "20261120T120000Z");
  for (const char* name : {"latest", "20261120T120000Z", "20261120T1200Z-9f2c", "-", ""})
    EXPECT_FALSE(stamp_of_run(name)) << name;
}

TEST_F(Reader, AWholeLineThatIsNoRecordIsKept) {
  const std::string line = R"({"of": "another kind"})";
  const CasesFile cases = read(line_ + "\n" + line);
  EXPECT_EQ(cases.records.size(), 1u);
  EXPECT_FALSE(cases.torn);
  EXPECT_TRUE(cases.newline_missing);
  EXPECT_EQ(cases.whole_bytes, line_.size() + 1 + line.size());
  ASSERT_EQ(cases.warnings.size(), 1u);
}

// Of many records, so that several threads read them.
TEST(LargeCasesFile, ManyRecordsKeepTheirOrderAndTheirLineNumbers) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    Json record = ok_record();
    record["index"] = i;
    text += i == 1500 ? "no record\n" : record.dump() + "\n";
  }
  put_file(folder.path() / "cases.jsonl", text + "{\"index\":");
  const CasesFile cases = read_cases(folder.path() / "cases.jsonl");
  ASSERT_EQ(cases.records.size(), 1999U);
  for (std::size_t i = 0; i < cases.records.size(); ++i)
    EXPECT_EQ(cases.records[i].identity.index, static_cast<std::int64_t>(i < 1500 ? i : i + 1));
  EXPECT_TRUE(cases.torn);
  EXPECT_EQ(cases.whole_bytes, text.size());
  ASSERT_EQ(cases.warnings.size(), 2U);
  EXPECT_NE(cases.warnings[0].find(":1501:"), std::string::npos) << cases.warnings[0];
  EXPECT_NE(cases.warnings[1].find(":2001:"), std::string::npos) << cases.warnings[1];
}

TEST(LastCase, TheLastLineAloneSaysTheSameOfTheEnd) {
  TemporaryFolder folder;
  const std::string line = ok_record().dump();
  for (const std::string& text :
       {std::string(), std::string("\n"), line, line + "\n", line + "\n" + line, line + "\n" + line + "\n",
        line + "\n" + line.substr(0, 50), line.substr(0, 50), line + "\nno record\n", line + "\n{}", line + "\n\n"}) {
    put_file(folder.path() / "cases.jsonl", text);
    const CasesFile all = read_cases(folder.path() / "cases.jsonl"),
                    last = read_last_case(folder.path() / "cases.jsonl");
    EXPECT_EQ(last.torn, all.torn) << text;
    EXPECT_EQ(last.whole_bytes, all.whole_bytes) << text;
    EXPECT_EQ(last.newline_missing, all.newline_missing) << text;
    EXPECT_EQ(last.warnings, all.warnings) << text;
  }
}

}  // namespace
}  // namespace assay::host::results
