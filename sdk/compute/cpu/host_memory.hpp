// How much memory this machine has, and how much of it this process could still take: what the kernel says is
// available, under every control group that the process is in.
#pragma once
#include <cstdint>
#include <string>

namespace assay::cpu {

struct HostMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// `root` is put before every path, so that a test can offer its own files.
HostMemory read_host_memory(const std::string& root = "");

// "AMD EPYC 9454 48-Core Processor", from /proc/cpuinfo; "CPU" when the kernel does not say.
std::string read_cpu_model(const std::string& root = "");
// The same with what distinguishes processors of one name, as in virtual machines: "..., family 6, model 143, stepping
// 8". Parts that the kernel does not report are left out.
std::string read_processor(const std::string& root = "");

}  // namespace assay::cpu
