// Element-wise kernels, for fp32, bf16 and fp16: computed in fp32 and rounded once. Outputs may be inputs, element for
// element. Nothing is launched for no elements.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

#include "common/kernel_shapes.hpp"

namespace assay::compute {
enum class Activation : std::int32_t;
}  // namespace assay::compute

namespace assay::cuda {

using compute::SwigluShape;

void launch_add(cudaStream_t stream, compute::DType type, const void* a, const void* b, void* out, std::int64_t count);
void launch_multiply(cudaStream_t stream, compute::DType type, const void* a, const void* b, void* out,
                     std::int64_t count);
void launch_scale(cudaStream_t stream, compute::DType type, const void* x, float factor, void* out, std::int64_t count);
void launch_soft_cap(cudaStream_t stream, compute::DType type, const void* x, float cap, void* out, std::int64_t count);
void launch_activation_forward(cudaStream_t stream, compute::DType type, compute::Activation kind, const void* x,
                               void* y, std::int64_t count);
void launch_activation_backward(cudaStream_t stream, compute::DType type, compute::Activation kind, const void* x,
                                const void* dy, void* dx, std::int64_t count);
// dx = dy * factor where y > 0, else 0.
void launch_relu_dropout_backward(cudaStream_t stream, compute::DType type, const void* y, const void* dy, void* dx,
                                  float factor, std::int64_t count);

// ---- bias: matrices are contiguous [rows, width] -------------------------------------------------------------------

void launch_bias_add(cudaStream_t stream, compute::DType type, compute::DType bias_type, const void* x,
                     const void* bias, void* y, std::int64_t rows, std::int64_t width);

// Rows are summed in blocks and the blocks' sums in order. How many blocks depends on the shape and type alone, so the
// sum does not depend on the device. `partial`: bias_blocks() of scratch_sizes.hpp * width floats.
void launch_bias_backward(cudaStream_t stream, compute::DType type, compute::DType dbias_type, const void* dy,
                          void* dbias, bool accumulate, std::int64_t rows, std::int64_t width, float* partial);

// ---- SwiGLU --------------------------------------------------------------------------------------------------------

// `activation` of the gate: SiLU or GELU by tanh.
void launch_swiglu_forward(cudaStream_t stream, compute::DType type, compute::Activation activation, const void* gate,
                           const void* up, void* h, const SwigluShape& shape);
// dgate may be gate and dup may be up. `h` may be NULL; otherwise it receives the same bits as from the forward.
void launch_swiglu_backward(cudaStream_t stream, compute::DType type, compute::Activation activation, const void* gate,
                            const void* up, const void* dh, void* dgate, void* dup, void* h, const SwigluShape& shape);

// The same with 8 bits of h, or of [dgate, dup], which are then the halves of one buffer: a scale for each row.
struct EightBitsOut {
  std::uint8_t* numbers;
  float* inverse_scale;
};
void launch_swiglu_forward_rows(cudaStream_t stream, compute::DType type, const void* gate, const void* up, void* h,
                                const SwigluShape& shape, const EightBitsOut& eight_bits);
void launch_swiglu_backward_rows(cudaStream_t stream, compute::DType type, const void* gate, const void* up,
                                 const void* dh, void* dgate, void* dup, void* h, const SwigluShape& shape,
                                 const EightBitsOut& eight_bits);

}  // namespace assay::cuda
