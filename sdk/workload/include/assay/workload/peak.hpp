// The most that a device does, by trial: what a step's rates are compared with.
#pragma once
#include <assay/plugin.hpp>
#include <assay/workload/precision.hpp>

namespace assay::workload {

// The best rate of a square matrix product of random numbers in the policy's type (8192 wide on CUDA, 768 on the CPU),
// and of a copy of what no cache holds. Takes about a tenth of a second, with a backend and memory of its own, which
// are gone when it returns and in no account. Blocks. Throws assay::Error, OUT_OF_MEMORY where too little is left.
Peak measure_peak(const Host& host, const Launch& launch, const PrecisionPolicy& precision);

}  // namespace assay::workload
