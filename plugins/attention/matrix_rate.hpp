// The rate of a large matrix product on the device: what an attention's own rate is compared with.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>
#include <assay/workload/precision.hpp>
#include <functional>

namespace attention {

// The median time of what `enqueue` enqueues, from the call to the end of a synchronisation, over up to 20 runs that
// together take about a tenth of a second, or 3 of longer ones, or 1 of more than a second. Blocks. Run it once before,
// if its first run is not to count.
double median_ms(assay::compute::Backend& backend, const std::function<void()>& enqueue);

// TFLOP/s of a square product of random matrices in the policy's type: 8192 wide on CUDA, 2048 on the CPU. Its backend
// and its memory are its own and gone when it returns; they are not in the account of the case.
double measure_matrix_rate(const assay::Host& host, const assay::Launch& launch,
                           const assay::workload::PrecisionPolicy& precision);

}  // namespace attention
