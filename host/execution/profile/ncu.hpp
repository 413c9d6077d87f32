// Running a worker under NVIDIA's Nsight Compute, whose program is ncu: it runs every kernel of a range several times,
// and reads the device's counters. What it is called with and what it says are as NVIDIA's manual of its command line
// has them. Where it has run: docs/experiment.md, "Profiling".
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::profile {

// The first release whose options are those below.
inline constexpr std::string_view oldest_ncu = "2023.1";

// "2025.3.1.0" of what `ncu --version` says; "" where it names no version.
std::string ncu_version(std::string_view said);
bool is_too_old(const std::string& ncu_version);

// What ncu is asked for by name, on any device; what a device's tensor cores do is asked for by a section of ncu's own,
// since the names differ from device to device.
namespace counter {
inline constexpr std::string_view time = "gpu__time_duration.sum", dram_bytes = "dram__bytes.sum",
                                  dram_percent = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                                  sm_percent = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                  tensor_percent = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                  occupancy_percent = "sm__warps_active.avg.pct_of_peak_sustained_active",
                                  clock = "sm__cycles_elapsed.avg.per_second",
                                  adds = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                                  multiplications = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                                  fused = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                  tensor_operations = "sm__ops_path_tensor_";  // how the names of these begin
}  // namespace counter

// What goes between "ncu" and the program: the kernels between cudaProfilerStart and cudaProfilerStop, those of graphs
// each for itself, at most `launches` of them, on clocks as they are, with caches flushed before each (ncu's default).
// ncu writes its table and its complaints to `table`; the program's own output stays where it is.
std::vector<std::string> ncu_arguments(const std::filesystem::path& table, std::int64_t launches);

// What ncu complains of ("==ERROR== ...") among `text`, its table or what it has printed, in one line with the remedy
// where assay knows one; "" where it does not complain.
std::string ncu_complaint(std::string_view text);

}  // namespace assay::host::profile
