#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Border : public Sandbox {
 protected:
  std::vector<json> run_cases(const std::string& measure, const std::string& sweep = "") {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<json> records = records_of({.plugin = EMPTY_PLUGIN, .measure = measure, .sweep = sweep});
    wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return records;
  }

  double wall_s_ = 0;
};

TEST_F(Border, AnEmptyStep) {
  const auto records = run_cases("warmup = 1000\nsteps = 100000");
  ASSERT_EQ(records.size(), 1u);
  const json& step = records[0]["phases"]["step"];
  EXPECT_EQ(step["n"], 100'000);
  std::printf("  an empty step: mean %.0f ns, median %.0f ns; of it in the plugin's call and its marks: %.0f ns\n",
              step["mean_ms"].get<double>() * 1e6, step["p50_ms"].get<double>() * 1e6,
              step["host_mean_ms"].get<double>() * 1e6);
}

TEST_F(Border, AnEmptyCase) {
  const auto records = run_cases("warmup = 0\nsteps = 1", "i = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
  ASSERT_EQ(records.size(), 10u);
  for (const json& r : records) EXPECT_EQ(r["status"], "ok") << r["reason"];
  std::printf("  ten empty cases, each in a process of its own: %.3f s with start and tables, %.1f ms a case\n",
              wall_s_, wall_s_ * 100);
}

}  // namespace
}  // namespace assay::test
