// How long threads were ready to run and got no processor: what a neighbour on the machine takes from a measurement.
#pragma once
#include <cstdint>
#include <string>

namespace assay::cpu {

// For all threads of this process together, since each began: the kernel's run_delay, from /proc/self/task/*/schedstat.
// 0 if the kernel does not keep it. `root` is put before the path, so that a test can offer its own files.
std::uint64_t waited_for_processor_ns(const std::string& root = "");

}  // namespace assay::cpu
