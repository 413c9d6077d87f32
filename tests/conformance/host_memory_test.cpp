#include "host_memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace assay::cpu {
namespace {

constexpr std::uint64_t mib = 1u << 20;
constexpr std::uint64_t reserve = 64 * mib;  // what is never offered

// A tree of files that stands for the machine's /proc and /sys.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "assay_host_memory_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder " + name);
    root_ = name;
    put("/proc/meminfo", "MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable:  4194304 kB\nHugePages_Total: 0\n");
  }
  ~HostMemoryTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::uint64_t free_mib() const { return (read_host_memory(root_).free_bytes + reserve) / mib; }
  std::string root_;
};

TEST_F(HostMemoryTest, WithoutGroupsTheKernelsWordCounts) {
  EXPECT_EQ(read_host_memory(root_).total_bytes, 8192 * mib);
  EXPECT_EQ(read_host_memory(root_).free_bytes, 4096 * mib - reserve);
}

TEST_F(HostMemoryTest, VersionTwoLimitCountsWithoutItsCache) {
  put("/proc/self/cgroup", "0::/job\n");
  put("/sys/fs/cgroup/job/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/job/memory.current", "536870912\n");
  put("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 268435456\n");
  EXPECT_EQ(free_mib(), 768u);
}

TEST_F(HostMemoryTest, NoLimitIsNoLimit) {
  put("/proc/self/cgroup", "0::/job\n");
  put("/sys/fs/cgroup/job/memory.max", "max\n");
  put("/sys/fs/cgroup/job/memory.current", "536870912\n");
  EXPECT_EQ(free_mib(), 4096u);
}

TEST_F(HostMemoryTest, AnAncestorMayBeTighter) {
  put("/proc/self/cgroup", "0::/slurm/job/step\n");
  put("/sys/fs/cgroup/slurm/job/step/memory.max", "2147483648\n");
  put("/sys/fs/cgroup/slurm/job/step/memory.current", "0\n");
  put("/sys/fs/cgroup/slurm/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/slurm/memory.current", "104857600\n");
  EXPECT_EQ(free_mib(), 924u);
}

// In a container the process's path is the host's, and only the mount's root is there.
TEST_F(HostMemoryTest, AMissingGroupFallsToTheRootOfTheMount) {
  put("/proc/self/cgroup", "0::/docker/0123\n");
  put("/sys/fs/cgroup/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/memory.current", "73741824\n");
  EXPECT_EQ(read_host_memory(root_).free_bytes, 1000000000u - reserve);
}

TEST_F(HostMemoryTest, VersionOneLimitCounts) {
  put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/user/job\n3:cpuset:/\n0::/\n");
  put("/sys/fs/cgroup/memory/user/job/memory.limit_in_bytes", "1073741824\n");
  put("/sys/fs/cgroup/memory/user/job/memory.usage_in_bytes", "1073741824\n");
  put("/sys/fs/cgroup/memory/user/job/memory.stat", "cache 5\ntotal_inactive_file 209715200\n");
  EXPECT_EQ(free_mib(), 200u);
}

TEST_F(HostMemoryTest, OverTheLimitIsNothing) {
  put("/proc/self/cgroup", "0::/job\n");
  put("/sys/fs/cgroup/job/memory.max", "1000\n");
  put("/sys/fs/cgroup/job/memory.current", "2000\n");
  EXPECT_EQ(read_host_memory(root_).free_bytes, 0u);
}

TEST_F(HostMemoryTest, ReadsTheModelOfTheProcessor) {
  put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9454 48-Core Processor \nflags : x\n");
  EXPECT_EQ(read_cpu_model(root_), "AMD EPYC 9454 48-Core Processor");
  EXPECT_EQ(read_processor(root_), "AMD EPYC 9454 48-Core Processor");
  put("/proc/cpuinfo",
      "cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Processor\nstepping\t: 8\n\nstepping\t: 9\n");
  EXPECT_EQ(read_processor(root_), "Intel(R) Xeon(R) Processor, family 6, model 143, stepping 8");
  put("/proc/cpuinfo", "processor\t: 0\n");
  EXPECT_EQ(read_cpu_model(root_), "CPU");
}

}  // namespace
}  // namespace assay::cpu
