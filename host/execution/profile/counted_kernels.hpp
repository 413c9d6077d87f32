// From what Nsight Compute counted of each launch to a row for each kernel, and tables of them beside what the workload
// itself says of its step.
#pragma once
#include <string>
#include <vector>

#include "profile/ncu_table.hpp"
#include "record/case_record.hpp"

namespace assay::host::profile {

// Which of the device's parts is busy: from this share of its most on it bounds a kernel. One that leaves all of them
// below that waits.
inline constexpr double bound_from_percent = 60;

// "memory", "tensor cores", "instructions" (the multiprocessors, whatever they do), "latency"; "" of a launch without
// the shares of memory and multiprocessors.
std::string bound_of(const record::Number& dram_percent, const record::Number& sm_percent,
                     const record::Number& tensor_percent);

// A row for each kernel, by its name as tables show it; those that take longest first.
std::vector<record::CountedKernel> counted_kernels(const std::vector<CountedLaunch>& launches);

record::Number gbytes_per_s(const record::CountedKernel& kernel);
record::Number gflop_per_s(const record::CountedKernel& kernel);
record::Number flops_per_byte(const record::CountedKernel& kernel);
// Their sum; no number where one of them lacks it. The shares are the means by time, and nothing
// bounds it.
record::CountedKernel sum_of(const std::vector<record::CountedKernel>& kernels);

// Sums of all that was counted, beside the operations and bytes that the workload states of a step, in sentences.
std::vector<std::string> beside_the_workload(const record::CounterProfile& profile,
                                             const std::optional<record::Work>& work);

// The kernels that take longest, at most `most_rows` of them, as an aligned table with a header.
std::vector<std::string> counted_lines(const record::CaseResult& result, std::size_t most_rows);
// All of them, and the classes. `result` has what was counted.
std::string counted_markdown(const record::CaseResult& result);

}  // namespace assay::host::profile
