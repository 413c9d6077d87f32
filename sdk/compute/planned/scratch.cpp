// The GPU's kernels: which operations they refuse, and the scratch that they want. From the same formulas as the
// backend's own (compute/cuda).
#include "common/checks.hpp"
#include "common/kernel_arguments.hpp"
#include "cuda/attention_operands.hpp"
#include "cuda/matmul_key.hpp"
#include "cuda/scratch_sizes.hpp"
#include "planned/planned_backend.hpp"

namespace assay::planned {

#if ASSAY_PLANS_CUDA
namespace {

constexpr std::size_t alignment = 256;

struct Scratch {
  ProductMath math;
  std::size_t bytes = 0;

  void floats(std::size_t n) { bytes = n * sizeof(float); }

  // cuBLASLt's algorithms have workspaces of up to 64 MiB of their own, which is known when one was chosen: most have
  // none.
  void operator()(const op::Matmul& op) {
    if (op.c.elements() > 0) static_cast<void>(cuda::matmul_call(op, math));
  }
  void operator()(const op::BiasBackward& op) {
    const std::int64_t rows = rows_of(op.dy), width = op.dy.dim(-1);
    floats(static_cast<std::size_t>(cuda::bias_blocks(op.dy.dtype, rows, width) * width));
  }
  void operator()(const op::RmsNormBackward& op) { floats(cuda::norm_partial_floats(rows_of(op.x), op.x.dim(-1))); }
  void operator()(const op::LayerNormBackward& op) {
    floats(2 * cuda::norm_partial_floats(rows_of(op.x), op.x.dim(-1)));
  }
  void operator()(const op::DropoutAddLayerNormBackward& op) {
    floats(cuda::dropout_norm_partial_floats(rows_of(op.dy), op.dy.dim(-1)));
  }
  void operator()(const op::Sum&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::SumOfSquares&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::MaxAbs&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::CountNonfinite&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::OrderedSum& op) { floats(cuda::ordered_sum_partials(op.x.elements(), op.options)); }
  void operator()(const op::OrderedDot& op) { floats(cuda::ordered_sum_partials(op.x.elements(), op.options)); }
  void operator()(const op::SwigluForward& op) { static_cast<void>(swiglu_shape(op)); }
  void operator()(const op::SwigluBackward& op) { static_cast<void>(swiglu_shape(op)); }
  void operator()(const op::Rotary& op) { static_cast<void>(rotary_shape(op)); }
  void operator()(const op::AttentionForward& op) {
    require_served(op);
    if (op.q.dtype != DType::f32 && op.shape.dropout.probability > 0) bytes = alignment;  // cuDNN's random numbers
  }
  // cuDNN 9.19 on an H200 wants the sums of dq in fp32, a number for each row of scores, and 256 bytes.
  void operator()(const op::AttentionBackward& op) {
    require_served(op);
    if (op.q.dtype == DType::f32) {
      bytes = op.lse.bytes();
      return;
    }
    bytes = static_cast<std::size_t>(op.q.elements()) * sizeof(float) + op.lse.bytes() + alignment;
    if (op.shape.dropout.probability > 0) bytes += alignment;
  }
  template <class Op>
  void operator()(const Op&) {}

  template <class Op>
  static void require_served(const Op& op) {
    if (const std::string why = cuda::refusal_of(op); !why.empty()) reject(Op::name, why);
  }
};

}  // namespace

std::size_t scratch_of(const AnyOperation& operation, ProductMath math) {
  Scratch scratch{math};
  std::visit([&](const auto* op) { scratch(*op); }, operation);
  return (scratch.bytes + alignment - 1) / alignment * alignment;
}
#else
std::size_t scratch_of(const AnyOperation&, ProductMath) { return 0; }
#endif

}  // namespace assay::planned
