#include "doctor/findings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "facts.hpp"

namespace assay::host::doctor {
namespace {

using Names = std::vector<std::string>;

Names found(const Facts& facts) {
  Names names;
  for (const Finding& finding : findings_of(facts)) names.emplace_back(finding.row->name);
  return names;
}

TEST(Findings, ASoundMachineHasNone) { EXPECT_EQ(found(sound_facts()), Names{}); }

// What each row is for: the change that it finds. A row without one fails below.
const std::map<std::string, std::function<void(Facts&)>> spoilt{
    {"device.none", [](Facts& f) { f.devices.clear(), f.machine.driver.clear(), f.machine.gpus.clear(); }},
    {"device.cpu",
     [](Facts& f) {
       f.devices[0] = {"cpu", "libdnnl.so.2 is missing", {}};
     }},
    {"gpu.driver_missing",
     [](Facts& f) {
       f.machine.driver.clear(), f.devices[1] = {"cuda", "no driver", {}};
     }},
    {"gpu.driver_old",
     [](Facts& f) {
       f.machine.driver = "575.1", f.devices[1] = {"cuda", "driver too old", {}};
     }},
    {"gpu.unusable", [](Facts& f) { f.devices[1].devices[0].problem = "exclusive process mode"; }},
    {"gpu.backend_missing", [](Facts& f) { f.devices.pop_back(); }},
    {"gpu.shared", [](Facts& f) { f.devices[1].devices[0].foreign_processes = 1; }},
    {"gpu.held", [](Facts& f) { f.devices[1].devices[0].held_by = {"heat"}; }},
    {"gpu.power", [](Facts& f) { f.devices[1].devices[0].power_limit_w = 500; }},
    {"gpu.link", [](Facts& f) { f.machine.gpus[0].link_width = 4; }},
    {"gpu.clocks", [](Facts& f) { f.devices[1].devices[0].application_sm_clock_mhz = 1410; }},
    {"gpu.part", [](Facts& f) { f.devices[1].devices[0].uuid = "MIG-1"; }},
    {"comm.nccl",
     [](Facts& f) {
       f.devices[1].devices.push_back(f.devices[1].devices[0]);
       f.communicators = {"gloo"};
     }},
    {"comm.shared_memory",
     [](Facts& f) {
       f.devices[1].devices.push_back(f.devices[1].devices[0]);
       f.machine.shared_memory_mib = 64;
     }},
    {"cpu.governor",
     [](Facts& f) {
       f.machine.governors = {{"performance", 40}, {"schedutil", 8}};
     }},
    {"cpu.quota", [](Facts& f) { f.machine.quota_cores = 4; }},
    {"cpu.neighbours", [](Facts& f) { f.machine.taken_processors = 12; }},
    {"cpu.clock", [](Facts& f) { f.machine.clock_ns = 900; }},
    {"cpu.frequency", [](Facts& f) { f.machine.governors.clear(); }},
    {"cpu.turbo", [](Facts& f) { f.machine.turbo = true; }},
    {"cpu.onednn",
     [](Facts& f) {
       f.devices[0].devices[0].libraries = "oneDNN 2.6.3; products up to avx512_core_amx; OpenMP 4.5, 48 threads";
     }},
    {"cpu.numa_balancing", [](Facts& f) { f.machine.numa_nodes = 2, f.machine.numa_balancing = true; }},
    {"memory.low", [](Facts& f) { f.machine.memory_total_mib = 64000, f.machine.memory_available_mib = 900; }},
    {"memory.swap", [](Facts& f) { f.machine.swap_used_mib = 3000; }},
    {"memory.limit", [](Facts& f) { f.machine.memory_limit_mib = 8192; }},
    {"memory.huge_pages", [](Facts& f) { f.machine.huge_pages = "never"; }},
    {"disk.unwritable", [](Facts& f) { f.machine.results_writable = false; }},
    {"disk.low", [](Facts& f) { f.machine.results_free_mib = 100; }},
    {"disk.network", [](Facts& f) { f.machine.results_file_system = "nfs4"; }},
    {"limits.open_files", [](Facts& f) { f.machine.open_files = 256; }},
    {"limits.ptrace", [](Facts& f) { f.machine.ptrace_scope = 1; }},
    {"limits.perf", [](Facts& f) { f.machine.perf_paranoid = 4; }},
    {"limits.counters", [](Facts& f) { f.machine.profiling_for_root_alone = true; }},
    {"variables.blocking",
     [](Facts& f) {
       f.machine.variables = {{"CUDA_LAUNCH_BLOCKING", "1"}};
     }},
    {"variables.loud",
     [](Facts& f) {
       f.machine.variables = {{"NCCL_DEBUG", "TRACE"}};
     }},
    {"variables.tf32",
     [](Facts& f) {
       f.machine.variables = {{"NVIDIA_TF32_OVERRIDE", "0"}};
     }},
    {"variables.preload",
     [](Facts& f) {
       f.machine.variables = {{"LD_PRELOAD", "/usr/lib/libjemalloc.so"}};
     }},
    {"variables.devices",
     [](Facts& f) {
       f.machine.variables = {{"CUDA_VISIBLE_DEVICES", "1"}};
     }},
    {"variables.threads",
     [](Facts& f) {
       f.machine.variables = {{"OMP_NUM_THREADS", "2"}};
     }},
};

TEST(Findings, EachRowFindsWhatItIsForAndNoOtherDoes) {
  for (const FindingRow& row : all_findings()) {
    const auto change = spoilt.find(row.name);
    ASSERT_NE(change, spoilt.end()) << row.name << " has no machine that it finds";
    Facts facts = sound_facts();
    change->second(facts);
    EXPECT_EQ(found(facts), Names{row.name});
  }
  EXPECT_EQ(spoilt.size(), all_findings().size());
}

TEST(Findings, TheGravestComeFirst) {
  Facts facts = sound_facts();
  for (const char* name : {"cpu.turbo", "disk.unwritable", "cpu.quota"}) spoilt.at(name)(facts);
  EXPECT_EQ(found(facts), (Names{"disk.unwritable", "cpu.quota", "cpu.turbo"}));
}

TEST(Findings, RootMayAttachAndCount) {
  Facts facts = sound_facts();
  for (const char* name : {"limits.ptrace", "limits.perf", "limits.counters"}) spoilt.at(name)(facts);
  facts.machine.is_root = true;
  EXPECT_EQ(found(facts), Names{});
}

TEST(Findings, NeighboursAreNamed) {
  Facts facts = sound_facts();
  facts.machine.taken_processors = 3.9;
  facts.machine.neighbours = {{4711, "cc1plus", 0.98}, {4712, "ninja", 0.05}};
  const auto findings = findings_of(facts);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].what, "others use 3.9 of 48 processors: cc1plus (4711, 98%), ninja (4712, 5%)");
}

TEST(Findings, OneDnnIsOldOnlyForAmxAndBeforeVersion3) {
  Facts facts = sound_facts();
  std::string& libraries = facts.devices[0].devices[0].libraries;
  for (const char* sound : {"oneDNN 2.6.3; products up to avx512_core_bf16; OpenMP 4.5, 2 threads; kernels avx512",
                            "oneDNN 3.7.2; products up to avx512_core_amx; OpenMP 4.5, 2 threads; kernels avx512"}) {
    libraries = sound;
    EXPECT_EQ(found(facts), Names{}) << sound;
  }
  libraries = "oneDNN 2.6.3; products up to avx512_core_amx; OpenMP 4.5, 2 threads; kernels avx512";
  const auto findings = findings_of(facts);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].what, "oneDNN 2.6.3 makes the products of a processor with AMX");
  EXPECT_TRUE(std::string(findings[0].row->remedy).starts_with("scripts/build_onednn "));
}

TEST(Findings, EachIsARowOfThePage) {
  std::ifstream file(DOCTOR_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const FindingRow& row : all_findings())
    EXPECT_NE(page.find(std::string("| `") + row.name + "` | " + name_of(row.severity) + " |"), std::string::npos)
        << row.name;
}

}  // namespace
}  // namespace assay::host::doctor
