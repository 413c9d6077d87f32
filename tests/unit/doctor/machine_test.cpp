#include "doctor/machine.hpp"

#include <gtest/gtest.h>

#include "doctor/findings.hpp"
#include "doctor/kernel_files.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::doctor {
namespace {

using test::put_file;

// A machine of four processors and a GPU, as its kernel would report it.
class PlayedMachine : public ::testing::Test {
 protected:
  PlayedMachine() {
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9454\nflags\t\t: fpu avx512f\n");
    put("proc/meminfo",
        "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n");
    put("proc/stat", "cpu 1 2 3 4\ncpu0 10 0 0 90 0 0 0 0\n");
    put("proc/loadavg", "0.10 0.20 0.30 1/100 42\n");
    put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Sep 2025\n");
    for (const char* cpu : {"cpu0", "cpu1", "cpu2", "cpu3"})
      put(std::string("sys/devices/system/cpu/") + cpu + "/cpufreq/scaling_governor", "performance\n");
    put("sys/devices/system/cpu/cpufreq/boost", "0\n");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
    put("sys/bus/pci/devices/0000:18:00.0/current_link_width", "16\n");
    put("sys/bus/pci/devices/0000:18:00.0/max_link_width", "16\n");
    put("sys/bus/pci/devices/0000:18:00.1/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:18:00.1/class", "0x040300\n");  // its audio part
    put("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    put("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
  }
  void put(const std::string& path, const std::string& text) { put_file(folder_ / path, text); }
  Machine look() const { return look_at_machine({folder_.path(), "results", {}}); }
  std::vector<std::string> found() const {
    Facts facts;
    facts.machine = look();
    facts.devices_asked = false;
    std::vector<std::string> names;
    for (const Finding& finding : findings_of(facts)) names.push_back(finding.row->name + (": " + finding.what));
    return names;
  }
  test::TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(PlayedMachine, IsReadFromItsFiles) {
  const Machine m = look();
  EXPECT_EQ(m.model, "AMD EPYC 9454");
  EXPECT_EQ(m.processors, 4u);
  EXPECT_EQ(m.governors, (std::vector<std::pair<std::string, std::size_t>>{{"performance", 4}}));
  EXPECT_EQ(m.turbo, false);
  EXPECT_FALSE(m.is_virtual);
  EXPECT_EQ(m.huge_pages, "madvise");
  EXPECT_EQ(m.swap_used_mib, 1024.0);
  EXPECT_EQ(m.memory_available_mib, 8192.0);
  EXPECT_EQ(m.driver, "580.95.05");
  ASSERT_EQ(m.gpus.size(), 1u) << "neither its audio part nor another maker's";
  EXPECT_EQ(m.gpus[0].address, "0000:18:00.0");
  EXPECT_EQ(m.gpus[0].widest_link, 16);
  EXPECT_TRUE(m.results.empty()) << "whose disk is not this one's";
  EXPECT_EQ(found(), (Names{"memory.swap: 1024 MiB lie in swap"}));
}

TEST_F(PlayedMachine, WithAWrongGovernor) {
  put("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
  EXPECT_EQ(found().front(), "cpu.governor: 1 of 4 processors is governed by 'powersave' (intel_pstate)");
}

TEST_F(PlayedMachine, WithoutADriver) {
  std::filesystem::remove(folder_ / "proc/driver/nvidia/version");
  put("proc/modules", "nouveau 2400256 0 - Live 0x0\n");
  EXPECT_EQ(found().front(),
            "gpu.driver_missing: a GPU of NVIDIA is on the PCI bus (0000:18:00.0), and no driver of NVIDIA is loaded; "
            "nouveau holds it");
}

TEST_F(PlayedMachine, WithAnOldDriver) {
  put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  May 2024\n");
  EXPECT_EQ(found().front(), "gpu.driver_old: the driver is 535.183.01, and CUDA 13 needs 580 or later");
}

TEST_F(PlayedMachine, WithLimitsAndASlowClock) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/memory.max", "4294967296\n");
  put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  put("proc/sys/kernel/yama/ptrace_scope", "1\n");
  put("proc/sys/kernel/perf_event_paranoid", "4\n");
  put("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n");
  put("sys/bus/pci/devices/0000:18:00.0/current_link_width", "8\n");
  const Names names = found();
  for (const char* expected :
       {"cpu.quota: the control group allows the time of 1.5 processors, and 4 are in use",
        "memory.limit: the control group allows 4096 MiB of memory", "cpu.clock: the kernel's clock is 'hpet'",
        "memory.huge_pages: transparent huge pages are off ('never')", "limits.ptrace: kernel.yama.ptrace_scope is 1",
        "limits.perf: kernel.perf_event_paranoid is 4", "gpu.link: the GPU at 0000:18:00.0 has 8 of 16 PCI lanes"})
    EXPECT_NE(std::find(names.begin(), names.end(), expected), names.end()) << expected;
}

TEST_F(PlayedMachine, ThatTellsNothingHasNoFindings) {
  test::TemporaryFolder bare;
  put_file(bare / "proc/version", "x");
  Facts facts;
  facts.machine = look_at_machine({bare.path(), "results", {}});
  facts.devices_asked = false;
  EXPECT_TRUE(findings_of(facts).empty());
}

TEST(Machine, ThisOneIsLookedAt) {
  const Machine m = look_at_machine({"/", "/proc", {}});
  EXPECT_GT(m.usable, 0u);
  EXPECT_GT(m.clock_ns, 0);
  EXPECT_EQ(m.results, "/proc");
  EXPECT_EQ(m.results_file_system, "proc");
}

TEST(KernelFiles, TheDeepestMountHoldsAPath) {
  const char* mounts = "/dev/vda1 / ext4 rw 0 0\nsrv:/x /data nfs4 rw 0 0\ntmpfs /data/my\\040runs tmpfs rw 0 0\n";
  EXPECT_EQ(file_system_of(mounts, "/data/results"), "nfs4");
  EXPECT_EQ(file_system_of(mounts, "/data/my runs/x"), "tmpfs");
  EXPECT_EQ(file_system_of(mounts, "/database"), "ext4");
  EXPECT_EQ(file_system_of("", "/x"), "");
}

TEST(KernelFiles, TheBusiestProcesses) {
  const std::map<std::int32_t, ProcessTicks> begin{
      {1, {"init", 5}}, {7, {"make", 10}}, {8, {"cc1plus", 20}}, {9, {"assay", 0}}};
  const std::map<std::int32_t, ProcessTicks> end{
      {1, {"init", 5}}, {7, {"make", 15}}, {8, {"cc1plus", 50}}, {9, {"assay", 90}}, {10, {"new", 7}}};
  const auto found = busiest(begin, end, 9, 30);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "cc1plus");
  EXPECT_DOUBLE_EQ(found[0].processors, 1);
  EXPECT_EQ(found[1].pid, 7);
}

TEST(KernelFiles, ANameMayHaveBracketsAndBlanks) {
  test::TemporaryFolder proc;
  put_file(proc / "42/stat", "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0\n");
  put_file(proc / "43/stat", "torn");
  put_file(proc / "44/stat", "44 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 30 12 0 0\n");  // the kernel's own
  put_file(proc / "self/stat", "1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 0 0\n");
  const auto found = ticks_of_processes(proc.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at(42).name, "a (b) c");
  EXPECT_EQ(found.at(42).ticks, 42u);
}

}  // namespace
}  // namespace assay::host::doctor
