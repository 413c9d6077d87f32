// `assay kernels` on records that a run has left, written here by hand: this machine may have no GPU.
#include "e2e/support/sandbox.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace assay::test {
namespace {

using Json = nlohmann::ordered_json;

// A case with a naive attention: half of the forward pass's time is softmax.
Json naive_case() {
  return Json::parse(R"({"schema": 1, "index": 0, "hash": "00", "axes": {"context_length": 128, "attention": "naive"},
    "status": "ok", "reason": "", "stage": "done", "phase": "", "rank": null, "workload": "decoder",
    "params": {}, "settings": {}, "notes": [], "started": "2026-11-22T12:00:00Z", "wall_s": {"case": 1.0},
    "work": {"flops": 300000000, "bytes": 0, "items": 1, "item_unit": "tokens"},
    "kernel_trace": {"steps": 3, "step_ms": 1.0, "busy_ms": 0.8, "in_graph": false, "file": "kernels_case-0001.md"},
    "kernels": {"forward": [{"class": "matrix products", "name": "gemm_a", "count": 12.0, "time_us": 100.0, "share": 0.25},
                            {"class": "softmax", "name": "softmax_forward_kernel", "count": 6.0, "time_us": 200.0,
                             "share": 0.5},
                            {"class": "matrix products", "name": "gemm_b", "count": 1.0, "time_us": 100.0,
                             "share": 0.25}],
                "optimizer": [{"class": "optimizer", "name": "adamw", "count": 1.0, "time_us": 400.0, "share": 1.0}]}})");
}

Json flash_case() {
  Json record = naive_case();
  record["index"] = 1;
  record["axes"]["attention"] = "flash";
  record["kernels"] = {
      {"forward",
       {{{"class", "matrix products"}, {"name", "gemm_a"}, {"count", 12.5}, {"time_us", 100.0}, {"share", 0.5}},
        {{"class", "attention"}, {"name", "flash_fprop"}, {"count", 6.0}, {"time_us", 100.0}, {"share", 0.5}}}}};
  return record;
}

Json case_without_kernels() {
  Json record = naive_case();
  record.erase("kernels");
  record.erase("kernel_trace");
  record["index"] = 2;
  record["axes"]["context_length"] = 256;
  record["notes"] = {"kernels: the cpu device offers no trace of them; their table needs a GPU"};
  return record;
}

class Kernels : public Sandbox {
 protected:
  void put_cases(const std::vector<Json>& records) {
    std::filesystem::create_directories(folder() / "run");
    std::ofstream file(folder() / "run/cases.jsonl");
    for (const Json& record : records) file << record.dump() << "\n";
  }
  std::string kernels(std::vector<std::string> arguments, int code = 0) const {
    arguments.insert(arguments.begin(), {"kernels", "run"});
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, code) << result.output;
    return result.output;
  }
  nlohmann::json rows(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--format", "json"});
    return nlohmann::json::parse(kernels(std::move(arguments)));
  }
};

TEST_F(Kernels, TheOverviewHasTheStepAndEachPhaseOfEachCase) {
  put_cases({naive_case(), flash_case()});
  const nlohmann::json all = rows({});
  ASSERT_EQ(all.size(), 5u);
  const nlohmann::json &step = all[0], &forward = all[1], &optimizer = all[2], &flash = all[4];
  EXPECT_EQ(step["case"], 1);
  EXPECT_EQ(step["context_length"], 128);
  EXPECT_EQ(step["phase"], "step");
  EXPECT_EQ(step["launches"], 20);
  EXPECT_EQ(step["time_us"], 800.0);
  EXPECT_EQ(step["busy.percent"], 80.0);
  EXPECT_EQ(step["products.percent"], 25.0);
  EXPECT_EQ(step["products.tflop_per_s"], 1.5);
  EXPECT_EQ(step["longest.kernel"], "adamw");
  EXPECT_EQ(forward["phase"], "forward");
  EXPECT_EQ(forward["step.percent"], 50.0);
  EXPECT_EQ(forward["products.percent"], 50.0);
  EXPECT_EQ(forward["softmax.percent"], 50.0);
  EXPECT_EQ(forward["softmax.over_products"], 1.0);
  EXPECT_EQ(forward["longest.kernel"], "softmax_forward_kernel");
  EXPECT_TRUE(forward["busy.percent"].is_null());
  EXPECT_EQ(optimizer["products.percent"], 0.0);
  EXPECT_TRUE(optimizer["softmax.percent"].is_null());
  EXPECT_EQ(flash["attention"], "flash");
  EXPECT_EQ(flash["softmax.percent"], "fused");
  EXPECT_TRUE(flash["softmax.over_products"].is_null());
  EXPECT_EQ(flash["launches"], 18.5);
}

TEST_F(Kernels, ACaseInDetailHasItsKernelsLongestFirst) {
  put_cases({naive_case(), flash_case()});
  const nlohmann::json all = rows({"--case", "1"});
  ASSERT_EQ(all.size(), 4u + 3u + 1u);
  EXPECT_EQ(all[4]["kernel"], "softmax_forward_kernel");
  EXPECT_EQ(all[4]["class"], "softmax");
  EXPECT_EQ(all[4]["launches"], 6);
  EXPECT_EQ(all[4]["phase.percent"], 50.0);
  EXPECT_EQ(all[4]["step.percent"], 25.0);
  EXPECT_EQ(rows({"--case", "1", "--by", "phase"}).size(), 3u);
  EXPECT_EQ(rows({"--top", "1"}).size(), 5u);
  const nlohmann::json classes = rows({"--by", "class", "--top", "1", "--case", "1"});
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[1]["class"], "matrix products");  // two kernels, together as long as the softmax, which comes later
  EXPECT_FALSE(classes[1].contains("kernel"));
}

TEST_F(Kernels, EveryFormatHasTheRows) {
  put_cases({naive_case()});
  EXPECT_TRUE(contains(kernels({"--format", "csv"}), "case,context_length,attention,phase,launches,time_us,"))
      << output();
  EXPECT_TRUE(
      contains(output(), "\n1,128,naive,forward,19,400.0,50.0,,50.0,0.0,50.0,1.0,,50.0,softmax_forward_kernel\n"))
      << output();
  EXPECT_TRUE(contains(kernels({"--format", "markdown"}), "| case |")) << output();
  EXPECT_TRUE(contains(kernels({}), ".percent")) << output();
}

TEST_F(Kernels, CasesWithoutKernelsAreToldAndAllOfThemAreAMistake) {
  put_cases({naive_case(), case_without_kernels()});
  const std::string some = kernels({});
  EXPECT_TRUE(
      contains(some, "case 3 (context_length=256 attention=naive) has no kernels: the cpu device offers no trace"))
      << some;
  EXPECT_TRUE(contains(some, "adamw")) << some;
  const std::string none = kernels({"--case", "3"}, 2);
  EXPECT_TRUE(contains(none,
                       "run has no kernels (the cpu device offers no trace of them; their table needs a GPU); "
                       "run the experiment with [profile] kernels = true (--set profile.kernels=true) on a GPU"))
      << none;
}

TEST_F(Kernels, MistakesOfTheCommandLineSayWhatIsExpected) {
  put_cases({naive_case()});
  EXPECT_TRUE(contains(kernels({"--by", "kernels"}, 2),
                       "--by is 'kernels'; expected one of phase, class, kernel, counter, plan; did you "
                       "mean 'kernel'?"))
      << output();
  EXPECT_TRUE(contains(kernels({"--format", "jsn"}, 2), "did you mean 'json'?")) << output();
  EXPECT_TRUE(contains(kernels({"--top", "0"}, 2), "--top is 0; expected a number >= 1")) << output();
  EXPECT_TRUE(contains(kernels({"--by", "phase", "--top", "2"}, 2), "expected --by class, kernel or counter"))
      << output();
  EXPECT_TRUE(contains(kernels({"--case", "9"}, 2), "--case is 9, which the run does not have; it has 1")) << output();
  const RunResult nowhere = run({"kernels", "nowhere"});
  EXPECT_EQ(nowhere.exit.code, 2);
  EXPECT_TRUE(contains(nowhere.output, "nowhere is not there; expected a run folder")) << nowhere.output;
  EXPECT_EQ(run({"kernels"}).exit.code, 2);
}

TEST_F(Kernels, AFolderOfSeveralRunsIsNotOneRun) {
  put_cases({naive_case()});
  std::filesystem::create_directories(folder() / "runs");
  for (const char* name : {"a", "b"}) std::filesystem::copy(folder() / "run", folder() / "runs" / name);
  const RunResult result = run({"kernels", "runs"});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_TRUE(contains(result.output, "runs holds 2 runs; expected one of them, such as runs/a")) << result.output;
}

}  // namespace
}  // namespace assay::test
