// Element-wise reductions in host memory.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/compute/tensor.hpp>

#include <cstddef>

namespace assay::comm::gloo_backend {

// target[i] = reduction over k of sources[k][i], for n elements of fp32 or bf16. `count` >= 1 sources, combined in
// their order in fp32 and rounded once; target may be one of them, and overlaps none of them otherwise. average divides
// the sum by `count`. max: a NaN in any source gives NaN.
void reduce(void* target, const void* const* sources, std::size_t count, std::size_t n, compute::DType, Reduction);

// UNSUPPORTED, with text, for what reduce() does not serve.
void require_reducible(compute::DType, Reduction);

}  // namespace assay::comm::gloo_backend
