// Which operations the kernels refuse, and the scratch that those of the GPU want: by the same code as the backends,
// but for cuDNN's workspace, which is as it was seen.
#include "common/checks.hpp"
#include "common/kernel_arguments.hpp"
#include "cuda/attention_operands.hpp"
#include "cuda/expert_limits.hpp"
#include "cuda/matmul_key.hpp"
#include "cuda/scratch_sizes.hpp"
#include "planned/planned_backend.hpp"

namespace assay::planned {
namespace {

struct Served {
  ProductMath math;

  void operator()(const op::SwigluForward& op) const { static_cast<void>(swiglu_shape(op)); }
  void operator()(const op::SwigluBackward& op) const { static_cast<void>(swiglu_shape(op)); }
  void operator()(const op::Rotary& op) const { static_cast<void>(rotary_shape(op)); }
#if ASSAY_PLANS_CUDA
  void operator()(const op::Matmul& op) const {
    if (op.c.elements() > 0) static_cast<void>(cuda::matmul_call(op, math));
  }
  void operator()(const op::AttentionForward& op) const { require_attention(op); }
  void operator()(const op::AttentionBackward& op) const { require_attention(op); }
  template <class Op>
  static void require_attention(const Op& op) {
    if (const std::string why = cuda::refusal_of(op); !why.empty()) reject(Op::name, why);
  }
  void operator()(const op::RouteForward& op) const { require_experts(op); }
  void operator()(const op::RouteBackward& op) const { require_experts(op); }
  void operator()(const op::RoutingLosses& op) const { require_experts(op); }
  void operator()(const op::GroupRows& op) const { require_experts(op); }
  void operator()(const op::GroupedMatmul& op) const { require_experts(op); }
  void operator()(const op::GroupedWeightGradient& op) const { require_experts(op); }
  template <class Op>
  static void require_experts(const Op& op) {
    if (const std::string why = cuda::refusal_of_experts(op); !why.empty()) reject(Op::name, why);
  }
#endif
  template <class Op>
  void operator()(const Op&) const {}
};

}  // namespace

void require_served(const AnyOperation& operation, ProductMath math) {
  std::visit([&](const auto* op) { Served{math}(*op); }, operation);
}

#if ASSAY_PLANS_CUDA
namespace {

constexpr std::size_t alignment = 256;

struct Scratch {
  std::size_t bytes = 0;

  void floats(std::size_t n) { bytes = n * sizeof(float); }

  // Not of products: cuBLASLt's algorithms have workspaces of up to 64 MiB, which is known when one was chosen.
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
  void operator()(const op::HeadNormRotaryBackward& op) {
    floats(cuda::head_norm_partial_floats(op.x.dim(2), op.x.dim(3)));
  }
  void operator()(const op::EmbeddingBackward& op) {
    bytes = cuda::embedding_marks(op.ids.elements(), op.dtable.dim(0)) * sizeof(std::uint32_t);
  }
  void operator()(const op::GroupedWeightGradient& op) {
    if (!op.dw && !cuda::updates_in_bf16(op)) bytes = op.dw.bytes();
  }
  void operator()(const op::RoutingLosses& op) {
    bytes = cuda::routing_loss_partials(op.scores.dim(0)) * sizeof(double);
  }
  void operator()(const op::GroupRows& op) {
    bytes = cuda::group_block_counts(op.experts.elements(), op.counts.dim(0)) * sizeof(std::int32_t);
  }
  void operator()(const op::QuantizeColumns& op) { floats(cuda::column_partial_floats(op.x.dim(0), op.x.dim(1))); }
  void operator()(const op::TransposeEightBits& op) {
    if (op.scale) floats(static_cast<std::size_t>(op.x.dim(0)));
  }
  void operator()(const op::NormalizeRows& op) {
    bytes = cuda::normalize_partials(op.x.dim(0), op.x.dim(1)) * sizeof(double);
  }
  void operator()(const op::Sum&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::SumOfSquares&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::MaxAbs&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::CountNonfinite&) { bytes = cuda::reduction_scratch_bytes; }
  void operator()(const op::OrderedSum& op) { floats(cuda::ordered_sum_partials(op.x.elements(), op.options)); }
  void operator()(const op::OrderedDot& op) { floats(cuda::ordered_sum_partials(op.x.elements(), op.options)); }
  void operator()(const op::AttentionForward& op) {
    if (op.q.dtype == DType::f32) return;
    if (op.shape.dropout.probability > 0) bytes = alignment;  // cuDNN's random numbers
    if (op.sinks) bytes += cuda::sinks_copy_bytes(op.sinks);
    add_documents(op);
  }
  // cuDNN 9.19 on an H200 wants the sums of dq in fp32, a number for each row of scores, and 256 bytes.
  void operator()(const op::AttentionBackward& op) {
    if (op.q.dtype == DType::f32) {
      bytes = op.lse.bytes();
      return;
    }
    bytes = static_cast<std::size_t>(op.q.elements()) * sizeof(float) + op.lse.bytes() + alignment;
    if (op.shape.dropout.probability > 0) bytes += alignment;
    add_documents(op);
  }
  template <class Op>
  void add_documents(const Op& op) {
    if (const std::int64_t documents = cuda::documents_of(op); documents > 0)
      bytes += cuda::document_tables_bytes(documents) + cuda::lse_copy_bytes(op.lse);
  }
  template <class Op>
  void operator()(const Op&) {}
};

}  // namespace

std::size_t scratch_of(const AnyOperation& operation) {
  Scratch scratch;
  std::visit([&](const auto* op) { scratch(*op); }, operation);
  return (scratch.bytes + alignment - 1) / alignment * alignment;
}
#else
std::size_t scratch_of(const AnyOperation&) { return 0; }
#endif

}  // namespace assay::planned
