#include "run/output_files.hpp"

#include <fstream>

#include "planned_runs.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::run::test {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  void write(const fs::path& file) const {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "text";
  }
  std::vector<worker::CaseSpec> writing(const std::string& name) const {
    worker::CaseSpec spec;
    spec.run_folder = run_.string();
    spec.output_files = {(run_ / name).string()};
    return {spec};
  }

  assay::test::TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(OutputFiles, AFolderInTheWayIsNamedWithTheRemedy) {
  fs::create_directories(run_ / "x.st");
  write(run_ / "file");
  EXPECT_EQ(obstacle_to_outputs(writing("x.st")),
            (run_ / "x.st").string() +
                " cannot be written: a folder of that name is there; name another file, or remove the folder");
  EXPECT_EQ(obstacle_to_outputs(writing("file/x")), (run_ / "file/x").string() +
                                                        " cannot be written: " + (run_ / "file").string() +
                                                        " is no folder; name another file, or remove that one");
  for (const char* name : {"y.st", "file", "a/b/c", "x.st/y"})
    EXPECT_EQ(obstacle_to_outputs(writing(name)), std::nullopt) << name;
}

TEST_F(OutputFiles, WhatIsHalfWrittenGoesAndNothingElse) {
  for (const char* name : {"a/x.st", "a/x.st.partial", "a/y.st.partial"}) write(run_ / name);
  fs::create_directories(run_ / "z.partial");
  remove_half_written(writing("a/x.st"));
  remove_half_written(writing("z"));
  remove_half_written(writing("not there"));
  EXPECT_TRUE(fs::exists(run_ / "a/x.st"));
  EXPECT_FALSE(fs::exists(run_ / "a/x.st.partial"));
  EXPECT_TRUE(fs::exists(run_ / "a/y.st.partial"));
  EXPECT_TRUE(fs::exists(run_ / "z.partial"));
}

}  // namespace
}  // namespace assay::host::run::test
