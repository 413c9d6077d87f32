#include "telemetry/environment.hpp"

#include "support/files.hpp"
#include "support/temporary_folder.hpp"
#include "telemetry/cgroup.hpp"

#include <assay/device.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::host::telemetry {
namespace {

using Json = nlohmann::ordered_json;
using test::put_file;
using test::TemporaryFolder;

class Environment : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) { put_file(folder_.path() / path, text); }
  Json capture() {
    EnvironmentSource source;
    source.root = folder_.path();
    source.variables = [this] { return variables_; };
    return capture_environment(source);
  }
  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> variables_;
};

TEST_F(Environment, ReadsWhatTheMachineTells) {
  put("proc/cpuinfo",
      "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9B14\n\nmodel name\t: other\n");
  put("proc/meminfo", "MemTotal:       24696832 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n");
  put("proc/loadavg", "0.52 1.25 2.00 2/100 4242\n");
  put("proc/self/cgroup", "0::/system.slice/job.scope\n");
  put("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/system.slice/job.scope/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/system.slice/job.scope/memory.max", "4294967296\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  put("sys/devices/system/cpu/cpufreq/boost", "1\n");
  put("sys/devices/system/node/online", "0-1\n");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12.2.0\n");
  put("etc/os-release", "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  const Json environment = capture();
  EXPECT_EQ(environment["cpu"]["model"], "AMD EPYC 9B14");
  EXPECT_EQ(environment["cpu"]["vendor"], "AuthenticAMD");
  EXPECT_EQ(environment["cpu"]["quota_cores"], 1.5);
  EXPECT_EQ(environment["cpu"]["governor"], "performance");
  EXPECT_EQ(environment["cpu"]["turbo"], "on");
  EXPECT_EQ(environment["cpu"]["numa_nodes"], 2);
  EXPECT_GE(environment["cpu"]["usable_cores"], 1);
  EXPECT_EQ(environment["memory"]["total_mib"], 24118.0);
  EXPECT_EQ(environment["memory"]["available_mib"], 19531.3);
  EXPECT_EQ(environment["memory"]["cgroup_limit_mib"], 4096.0);
  EXPECT_EQ(environment["os"]["distribution"], "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(environment["load_average"], Json({0.52, 1.25, 2.0}));
  EXPECT_EQ(environment["gpu"], Json({{"driver", "580.95.05"}}));
}

TEST_F(Environment, EveryFactOfAFileIsOptional) {
  const Json environment = capture();
  for (const char* key : {"model", "vendor", "quota_cores", "governor", "turbo", "numa_nodes"})
    EXPECT_FALSE(environment["cpu"].contains(key)) << key;
  EXPECT_TRUE(environment["memory"].empty());
  EXPECT_FALSE(environment["os"].contains("distribution"));
  EXPECT_FALSE(environment.contains("load_average"));
  EXPECT_FALSE(environment.contains("gpu"));
  EXPECT_TRUE(environment["variables"].empty());
}

TEST_F(Environment, RecordsTheListedVariablesAndNoOthers) {
  variables_ = {{"OMP_NUM_THREADS", "2"}, {"SECRET_TOKEN", "x"},       {"NCCL_DEBUG", "INFO"},
                {"PATH", "/bin"},         {"KMP_AFFINITY", "compact"}, {"MY_NCCL_KEY", "x"}};
  EXPECT_EQ(capture()["variables"],
            Json({{"KMP_AFFINITY", "compact"}, {"NCCL_DEBUG", "INFO"}, {"OMP_NUM_THREADS", "2"}}));
}

TEST_F(Environment, HasTheCommandLineAndTheTime) {
  put("proc/self/cmdline", std::string("assay\0run\0x.toml\0", 17));
  variables_ = {{"CUDNN_LOGDEST_DBG", "https://me:word@host/"}};
  const Json environment = capture();
  EXPECT_EQ(environment["command"], "assay run x.toml");
  EXPECT_EQ(environment["captured"].get<std::string>().size(), std::string("2026-11-20T12:00:00Z").size());
  EXPECT_EQ(environment["variables"]["CUDNN_LOGDEST_DBG"], "https://***@host/");
}

TEST_F(Environment, LimitsOfTheOlderControlGroups) {
  put("proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");  // the container's own group is the root it sees
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(cgroup_cpu_quota_cores(folder_.path()), 2.0);
  EXPECT_EQ(cgroup_memory_limit_bytes(folder_.path()), std::uint64_t{1} << 30);
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(cgroup_cpu_quota_cores(folder_.path()));
  put("proc/meminfo", "MemTotal: 1000 kB\n");
  EXPECT_FALSE(capture()["memory"].contains("cgroup_limit_mib"));
}

TEST_F(Environment, ListsOfTheKernel) {
  EXPECT_EQ(count_of_list("0"), 1u);
  EXPECT_EQ(count_of_list("0-3,8"), 5u);
  EXPECT_EQ(count_of_list(""), 0u);
  EXPECT_EQ(count_of_list("3-1"), 0u);
  EXPECT_EQ(count_of_list("x"), 0u);
}

TEST_F(Environment, NamesTheBuild) {
  const Json environment = capture_environment();
  EXPECT_EQ(environment["assay"]["version"], assay_version());
  EXPECT_EQ(environment["assay"]["abi"], "1." + std::to_string(ASSAY_ABI_MINOR));
  EXPECT_EQ(environment["assay"]["device_abi"], "1." + std::to_string(ASSAY_DEVICE_ABI_MINOR));
  EXPECT_FALSE(assay_version().empty());
  EXPECT_FALSE(assay_compiler().empty());
  // Hexadecimal digits of a commit, or the word for not knowing.
  const std::string revision = assay_revision();
  EXPECT_TRUE(revision == "unknown" || revision.find_first_not_of("0123456789abcdef") >= 40) << revision;
  EXPECT_FALSE(environment["os"]["kernel"].get<std::string>().empty());
}

}  // namespace
}  // namespace assay::host::telemetry
