// A rank of a pipeline is killed while the others wait for what it is to send.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class KilledStage : public Sandbox {
 protected:
  // The workers of this folder's run that have loaded the communicator.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& process : fs::directory_iterator("/proc")) {
      const std::string name = process.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (fs::read_symlink(process.path() / "cwd", error) != folder()) continue;
      std::ifstream maps(process.path() / "maps");
      bool has_communicator = false;
      for (std::string line; !has_communicator && std::getline(maps, line);)
        has_communicator = contains(line, "libassay_comm_gloo");
      if (has_communicator) found.push_back(std::stoi(name));
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

TEST_F(KilledStage, IsARowWithTheReasonAndTheNextCaseRuns) {
  write_experiment({.plugin = "pipeline_parallel",
                    .params = "d_model = 32\nd_ff = 64\nheads = 2\nvocab_size = 96\nbatch_size = 2\n"
                              "context_length = 16\nlayers = 4\naccumulation_steps = 4\n",
                    .measure = "warmup = 1\ntimeout = \"100s\"",
                    .run = "threads = 1\nranks = 3",
                    .sweep = "\"measure.steps\" = [1000000, 2]"});
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] { return ranks().size() == 3; })) << output();
  kill(ranks()[1], SIGKILL);
  const auto exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1) << output();
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u) << output();
  EXPECT_EQ(records[0]["status"], "crashed");
  EXPECT_PRED2(contains, records[0]["reason"], "killed by SIGKILL (killed from outside)");
  EXPECT_EQ(records[1]["status"], "ok") << records[1]["reason"];
  EXPECT_EQ(records[1]["verify"]["status"], "ok");
  EXPECT_TRUE(all_descendants_are_gone());
}

}  // namespace
}  // namespace assay::test
