#include "results/environments.hpp"

#include "common/files.hpp"
#include "support/files.hpp"
#include "temporary_folder.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::host::results {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string captured(const std::string& driver, const std::string& command) {
  return Json{{"captured", command}, {"command", command}, {"gpu", {{"driver", driver}}}}.dump();
}

class EnvironmentsOfARun : public ::testing::Test {
 protected:
  Environments read(const fs::path& run) { return read_environments(run, warnings_); }
  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(EnvironmentsOfARun, AnInvocationElsewhereIsAnother) {
  const std::string first = add_invocation(folder_.path(), captured("580.1", "run"));
  const std::string again = add_invocation(folder_.path(), captured("580.1", "resume"));
  const std::string other = add_invocation(folder_.path(), captured("590.2", "resume"));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  const Environments all = read(folder_.path());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at(first).fact_or("gpu.driver", ""), "580.1");
  EXPECT_EQ(all.at(first).invocations().size(), 2u);
  EXPECT_EQ(all.at(other).invocations().size(), 1u);
  EXPECT_EQ(Json::parse(read_file(folder_.path() / "environment.json"))["gpu"]["driver"], "590.2") << "the newest";
}

TEST_F(EnvironmentsOfARun, ARunOfBeforeKeepsItsOwnForItsRecords) {
  test::put_file(folder_.path() / "environment.json", R"({"gpu": {"driver": "570.0"}})");
  add_invocation(folder_.path(), captured("590.2", "resume"));
  add_invocation(folder_.path(), captured("591.0", "resume"));
  const Environments all = read(folder_.path());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at("unnamed").fact_or("gpu.driver", ""), "570.0");
}

TEST_F(EnvironmentsOfARun, AreBroughtTogether) {
  const fs::path one = folder_.path() / "one", other = folder_.path() / "other", run = folder_.path() / "run";
  for (const fs::path& each : {one, other, run}) fs::create_directories(each);
  const std::string here = add_invocation(one, captured("580.1", "first"));
  add_invocation(other, captured("580.1", "second"));
  const std::string there = add_invocation(other, captured("590.2", "third"));
  test::put_file(other / "environments/torn.json", "half a fi");
  for (int time = 0; time < 2; ++time) {
    std::vector<std::string> notes;
    merge_environments(run, {one, other}, notes);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("torn.json is not a JSON object"), std::string::npos) << notes[0];
    const Environments all = read(run);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all.at(here).invocations().size(), 2u);
    EXPECT_EQ(all.at(there).invocations().size(), 1u);
  }
}

TEST_F(EnvironmentsOfARun, NoneIsNoMistakeAndHalfAFileIsTold) {
  EXPECT_TRUE(read(folder_.path()).empty());
  EXPECT_TRUE(warnings_.empty());
  test::put_file(folder_.path() / "environments/0123.json", "half a fi");
  EXPECT_TRUE(read(folder_.path()).empty());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("0123.json"), std::string::npos);
}

}  // namespace
}  // namespace assay::host::results
