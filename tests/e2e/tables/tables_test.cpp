#include <sstream>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Tables : public Sandbox {
 protected:
  Tables() : Sandbox(PLUGINS) {}
  static ExperimentText measured(const std::string& params, const std::string& name = "x") {
    return {.plugin = "measured_work",
            .name = name,
            .params = params,
            .measure = "warmup = 0\nsteps = 2",
            .sweep = "elements = [16, 32]"};
  }
  // Under two names, since the folders of one second have no order.
  void run_twice() {
    run_experiment(measured("batch_size = 4", "first"));
    run_experiment(measured("batch_size = 8", "second"));
  }
  std::string results() const { return run_folder("first").parent_path().parent_path().string(); }
};

TEST_F(Tables, RunsArePutTogetherLater) {
  run_twice();
  const RunResult shown = run({"table", results(), "--columns", "elements,batch_size,step.n", "--format", "csv"});
  EXPECT_EQ(shown.exit.code, 0) << shown.output;
  std::istringstream lines(shown.output);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "run,elements,batch_size,step.n");
  std::vector<std::string> rows;
  while (std::getline(lines, line)) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], run_folder(i < 2 ? "first" : "second").filename().string() + (i % 2 ? ",32," : ",16,") +
                           (i < 2 ? "4" : "8") + ",2");
}

TEST_F(Tables, EachFormIsWritten) {
  run_twice();
  EXPECT_EQ(run({"table", results(), "--output", "all.json"}).exit.code, 0);
  const json rows = json::parse(text_of(folder() / "all.json"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["batch_size"], 8);
  EXPECT_EQ(rows[3]["device"], "cpu");
  EXPECT_TRUE(rows[3].contains("run.seed"));
  const RunResult page = run({"table", results(), "--format", "md", "--filter", "batch_size=8"});
  EXPECT_EQ(page.exit.code, 0) << page.output;
  EXPECT_PRED2(contains, page.output, "| verify ");
  EXPECT_PRED2(contains, page.output, "Run " + run_folder("second").filename().string() + " of second, on ");
  const RunResult shown = run({"table", results()});
  EXPECT_PRED2(contains, shown.output, "batch_size");
}

TEST_F(Tables, TheTableOfARunIsMadeAgain) {
  run_experiment(measured("batch_size = 4"));
  const RunResult made = run({"table", run_folder().string(), "--format", "csv"});
  EXPECT_EQ(made.output, text_of(run_folder() / "table.csv"));
}

TEST_F(Tables, MistakesAreNamed) {
  run_experiment(measured(""));
  const auto refused = [this](std::vector<std::string> more, const std::string& why) {
    std::vector<std::string> arguments{"table", run_folder().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_PRED2(contains, result.output, why);
  };
  refused({"--columns", "step.maen_ms"}, "no record has a column 'step.maen_ms'");
  refused({"--columns", "step.maen_ms"}, "did you mean 'step.mean_ms'?");
  refused({"--columns", ","}, "--columns names no column");
  refused({"--format", "html"}, "--format is 'html'; expected terminal, md, csv or json");
  refused({"--output", "x.xlsx"}, ".csv, .md or");
  refused({"--filter", "elements=17"}, "there are 16, 32");
  refused({"/not/there"}, "/not/there is not there");
  const RunResult none = run({"table"});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_PRED2(contains, none.output, "no run is given");
}

}  // namespace
}  // namespace assay::test
