#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/host_process.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Border : public testing::Test {
 protected:
  Border() : folder_(fs::temp_directory_path() / ("assay_border_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Border() override { fs::remove_all(folder_); }
  std::vector<json> run(const std::string& tables) {
    std::ofstream(folder_ / "x.toml") << "schema = 1\nname = \"x\"\n[workload]\nplugin = \"" EMPTY_PLUGIN "\"\n"
                                      << tables;
    const auto begin = std::chrono::steady_clock::now();
    HostProcess host({"run", "x.toml", "--output", "results"}, folder_, folder_ / "output.txt");
    const auto exit = host.wait();
    wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_EQ(exit.value_or(HostExit{}).code, 0);
    std::vector<json> records;
    std::ifstream lines(folder_ / "results/x/latest/cases.jsonl");
    for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
    return records;
  }
  fs::path folder_;
  double wall_s_ = 0;
};

TEST_F(Border, AnEmptyStep) {
  const auto records = run("[measure]\nwarmup = 1000\nsteps = 100000\n[run]\ndevice = \"cpu\"\n");
  ASSERT_EQ(records.size(), 1u);
  const json& step = records[0]["phases"]["step"];
  EXPECT_EQ(step["n"], 100'000);
  std::printf("  an empty step: mean %.0f ns, median %.0f ns; of it in the plugin's call and its marks: %.0f ns\n",
              step["mean_ms"].get<double>() * 1e6, step["p50_ms"].get<double>() * 1e6,
              step["host_mean_ms"].get<double>() * 1e6);
}

TEST_F(Border, AnEmptyCase) {
  const auto records =
      run("[sweep]\ni = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n[measure]\nwarmup = 0\nsteps = 1\n[run]\ndevice = \"cpu\"\n");
  ASSERT_EQ(records.size(), 10u);
  for (const json& r : records) EXPECT_EQ(r["status"], "ok") << r["reason"];
  std::printf("  ten empty cases, each in a process of its own: %.3f s with start and tables, %.1f ms a case\n",
              wall_s_, wall_s_ * 100);
}

}  // namespace
}  // namespace assay::test
