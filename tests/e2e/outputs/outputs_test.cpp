#include <set>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class Outputs : public Sandbox {
 protected:
  Outputs() : Sandbox(PLUGINS) {}
  static ExperimentText writing(const std::string& params, const std::string& run = "", const std::string& sweep = "") {
    return {.plugin = "writing_work", .params = params, .measure = "warmup = 0\nsteps = 2", .run = run, .sweep = sweep};
  }
  // What lies in the newest run's folder `name`, without folders.
  std::set<std::string> files_in(const std::string& name) const {
    std::set<std::string> files;
    for (const auto& entry : fs::directory_iterator(run_folder() / name)) files.insert(entry.path().filename());
    return files;
  }
};

TEST_F(Outputs, APathThatLeavesTheRunFolderIsRefusedBeforeAnythingStarts) {
  const std::string outside = (folder() / "outside.txt").string();
  for (const std::string& path : {outside, std::string("../../../outside.txt"), std::string("cases.jsonl")}) {
    const RunResult result = run_experiment(writing("dump = \"" + path + "\""));
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_PRED2(contains, result.output, "[workload.params] dump is \"" + path + "\", which ");
    EXPECT_PRED2(contains, result.output, "expected the name of a file below the run folder");
    EXPECT_TRUE(run_folders().empty());
  }
  EXPECT_FALSE(fs::exists(outside));
}

TEST_F(Outputs, ACaseAloneWritesTheNameAsItStands) {
  records_of(writing("dump = \"out/x.txt\""));
  EXPECT_EQ(files_in("out"), std::set<std::string>{"x.txt"});
}

TEST_F(Outputs, EachCaseAndEachCopyWritesAFileOfItsOwn) {
  records_of(writing("dump = \"out/x.txt\"", "", "number = [7, 8]"));
  EXPECT_EQ(files_in("out"), (std::set<std::string>{"x.case-0001.txt", "x.case-0002.txt"}));
  EXPECT_EQ(text_of(run_folder() / "out/x.case-0001.txt"), "7");
  EXPECT_EQ(text_of(run_folder() / "out/x.case-0002.txt"), "8");
  records_of(writing("dump = \"out/x.txt\"", "ranks = 2\ncopies = true"));
  EXPECT_EQ(files_in("out"), (std::set<std::string>{"x.case-0001.rank0.txt", "x.case-0001.rank1.txt"}));
}

TEST_F(Outputs, NothingHalfWrittenIsLeftByAWorkerThatIsKilled) {
  const auto records = records_of(writing("dump = \"out/x.txt\"", "", "dies = [true, false]"), 1);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].value("status", ""), "crashed") << records[0].dump(2);
  EXPECT_EQ(files_in("out"), std::set<std::string>{"x.case-0002.txt"});
}

TEST_F(Outputs, AFolderInTheWayIsAClearReason) {
  records_of(writing("dump = \"out/x.txt\"", "", "number = [7, 8]"));
  fs::remove(run_folder() / "out/x.case-0002.txt");
  fs::create_directory(run_folder() / "out/x.case-0003.txt");
  // The run is resumed, and its new case meets what has come into its way meanwhile.
  const RunResult result = run_experiment(writing("dump = \"out/x.txt\"", "", "number = [7, 8, 9]"), {"--resume"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto last = cases().back();
  EXPECT_EQ(last.value("status", ""), "failed");
  EXPECT_PRED2(contains, last.value("reason", ""),
               "x.case-0003.txt cannot be written: a folder of that name is there; name another file, or remove");
}

}  // namespace
}  // namespace assay::test
