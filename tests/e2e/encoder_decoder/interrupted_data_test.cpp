// A data set whose generation is killed, and one that another process writes at the moment.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "encoder_decoder_sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t long_generation_bytes = 1'024'000'000;  // of which only what comes before the kill is written

// A number in /proc/<pid>/status.
std::int64_t status_field(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  return -1;
}

class EncoderDecoderInterruptedData : public EncoderDecoderSandbox {
 protected:
  // The worker that has the lock file of the data set open; nothing while there is none.
  std::optional<pid_t> worker_at_the_data() const {
    const fs::path lock = folder() / "data/_lock";
    std::error_code error;
    for (const auto& process : fs::directory_iterator("/proc")) {
      const std::string name = process.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      // Not this process, and not what it has forked and not yet become the host.
      if (fs::read_symlink(process.path() / "exe", error) == fs::read_symlink("/proc/self/exe")) continue;
      for (fs::directory_iterator file(process.path() / "fd", error), end; !error && file != end; file.increment(error))
        if (fs::read_symlink(file->path(), error) == lock) return std::stoi(name);
    }
    return {};
  }
  // A run that is `killed` (given its host) while it writes a data set that takes long.
  void run_and_kill(const std::function<void(const HostProcess&)>& kill) {
    std::error_code error;
    if (fs::space(folder(), error).available < 2 * static_cast<std::uintmax_t>(long_generation_bytes))
      GTEST_SKIP() << "too little room for temporary files";
    write_experiment(small("num_samples = " + std::to_string(long_generation_bytes / sample_bytes) +
                           "\nnum_shards = 20\nunit = \"step\"\ndata_dir = \"data\""));
    HostProcess host = start(run_arguments());
    ASSERT_TRUE(wait_until([&] { return fs::exists(folder() / "data/shard_0000.bin.partial"); })) << output();
    kill(host);
    ASSERT_TRUE(host.wait().has_value());
    EXPECT_TRUE(all_descendants_are_gone()) << "a worker outlived the host";
    EXPECT_EQ(names_in("data").count("_manifest.json"), 0u) << "what is unfinished looks finished";
    EXPECT_EQ(names_in("data").count("_generating"), 1u);
  }
  void expect_the_next_run_works() {
    run_well(small("num_samples = 40\nnum_shards = 2\ndata_dir = \"data\""));
    EXPECT_PRED2(contains, case_log(), "data: data set written");
    EXPECT_EQ(names_in("data"),
              (std::set<std::string>{"_lock", "_manifest.json", "_verified", "shard_0000.bin", "shard_0001.bin"}));
  }
};

TEST_F(EncoderDecoderInterruptedData, AKilledWorkerIsARow) {
  run_and_kill([&](const HostProcess&) {
    const std::optional<pid_t> worker = worker_at_the_data();
    ASSERT_TRUE(worker.has_value());
    ::kill(*worker, SIGKILL);
  });
  if (IsSkipped() || HasFatalFailure()) return;
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "crashed");
  EXPECT_EQ(records[0]["stage"], "setup");
  EXPECT_PRED2(contains, records[0]["reason"].get<std::string>(), "SIGKILL");
  expect_the_next_run_works();
}

TEST_F(EncoderDecoderInterruptedData, AKilledHostTakesItsWorkerAlong) {
  run_and_kill([](const HostProcess& host) { host.send(SIGKILL); });
  if (IsSkipped() || HasFatalFailure()) return;
  expect_the_next_run_works();
}

// Another process generates: the worker waits, and says on its board how far that one is, in MB.
TEST_F(EncoderDecoderInterruptedData, AWorkerThatWaitsForAnotherSaysHowFarThatIs) {
  fs::create_directory(folder() / "data");
  std::ofstream(folder() / "data/_generating") << "another process";
  std::ofstream(folder() / "data/shard_0000.bin.partial") << "";
  fs::resize_file(folder() / "data/shard_0000.bin.partial", 3'000'000);
  const int lock = ::open((folder() / "data/_lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);

  write_experiment(small("num_samples = 62500\nunit = \"step\"\ndata_dir = \"data\""));  // 8 MB
  HostProcess host = start(run_arguments());
  std::optional<pid_t> worker;
  EXPECT_TRUE(wait_until([&] { return (worker = worker_at_the_data()).has_value(); })) << output();
  if (worker) {
    // It sleeps between two looks at the lock, and reports its progress before it does.
    const std::string switches = "voluntary_ctxt_switches";
    const std::int64_t before = status_field(*worker, switches);
    EXPECT_TRUE(wait_until([&] { return status_field(*worker, switches) >= before + 2; }));
    ::kill(*worker, SIGKILL);
  }
  EXPECT_TRUE(host.wait().has_value());
  EXPECT_TRUE(all_descendants_are_gone());
  ::close(lock);
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["stage"], "setup");
  EXPECT_EQ(records[0]["step"], 3) << records[0];
  expect_the_next_run_works();  // what the other one left is cleared
}

}  // namespace
}  // namespace assay::test
