// Element-wise kernels: activations, biases, scaling, dropout. A table's [2] is the tensors' type, fp32 or bf16
// (kernel_f32, kernel_bf16); bf16 is computed in fp32 and rounded once. Outputs may be inputs, element for element.
#pragma once
#include <stdint.h>

#include "common/kernel_shapes.hpp"
#include "dropout.hpp"
#include "isa.hpp"

namespace assay::cpu {

using compute::SwigluShape;

// Row blocks of a bias gradient. Their number depends on the shape alone, so the sum does not depend on the threads.
constexpr int64_t bias_block_rows = 128;
constexpr int64_t bias_most_blocks = 64;
constexpr int64_t bias_blocks(int64_t rows) {
  const int64_t blocks = (rows + bias_block_rows - 1) / bias_block_rows;
  return blocks < bias_most_blocks ? blocks : bias_most_blocks;
}

struct ElementwiseKernels {
  using Unary = void (*)(const void* x, void* y, int64_t count);
  using Binary = void (*)(const void* a, const void* b, void* out, int64_t count);

  Binary add[2], multiply[2];
  void (*scale[2])(const void* x, float factor, void* out, int64_t count);
  void (*soft_cap[2])(const void* x, float cap, void* out, int64_t count);
  Unary activation_forward[4][2];    // by compute::Activation: relu, gelu_erf, gelu_tanh, silu
  Binary activation_backward[4][2];  // (x, dy, dx)
  // [type of x and y][type of bias]
  void (*bias_add[2][2])(const void* x, const void* bias, void* y, int64_t rows, int64_t width);
  // [type of dy][type of dbias]; `partial` is scratch of bias_blocks(rows) * width floats.
  void (*bias_backward[2][2])(const void* dy, void* dbias, bool accumulate, int64_t rows, int64_t width,
                              float* partial);
  // [of SiLU, of GELU by tanh]
  void (*swiglu_forward[2][2])(const void* gate, const void* up, void* h, const SwigluShape&);
  // `h` may be NULL.
  void (*swiglu_backward[2][2])(const void* gate, const void* up, const void* dh, void* dgate, void* dup, void* h,
                                const SwigluShape&);
  // Drops even where drop_below is 0.
  void (*dropout[2])(const void* x, void* y, int64_t count, const DropoutArgs&);
  // y = dropout(relu(x + bias)), [type of x and y][type of bias]; `bias` may be NULL.
  void (*bias_relu_dropout[2][2])(const void* x, const void* bias, void* y, int64_t rows, int64_t width,
                                  const DropoutArgs&);
  // dx = factor * dy where y > 0, else 0.
  void (*relu_dropout_backward[2])(const void* y, const void* dy, void* dx, float factor, int64_t count);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS_WITH_BF16(ElementwiseKernels, elementwise_kernels)
