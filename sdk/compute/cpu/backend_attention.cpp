// Softmax and tiled attention: argument checks and scratch.
#include <fmt/format.h>
#include <omp.h>

#include "cpu_backend.hpp"
#include "kernels/attention.hpp"
#include "kernels/loss.hpp"

namespace assay::cpu {
namespace {

void require_alike(const char* operation, const Tensor& first, const Tensor& other) {
  require_dtype(operation, other, {first.dtype});
  require_same_shape(operation, first, other);
  require_contiguous(operation, other);
}

SoftmaxArgs softmax_args(const char* operation, const Tensor& x, const Tensor& out, float scale) {
  require_dtype(operation, x, {DType::f32, DType::bf16});
  require_contiguous(operation, x);
  require_alike(operation, x, out);
  if (x.rank == 0 || x.dim(-1) == 0)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: no columns given; expected at least one in the last dimension", operation));
  SoftmaxArgs args{};
  args.bf16 = x.dtype == DType::bf16;
  args.x = x.data;
  args.out = out.data;
  args.columns = x.dim(-1);
  args.rows = x.elements() / args.columns;
  args.scale = scale;
  args.queries = x.rank >= 2 ? x.dim(-2) : 1;
  return args;
}

// A [batch, time, heads, depth] operand; `like` gives the expected type and, but for `time`, the expected shape.
AttentionView view_of(const char* operation, const char* name, const Tensor& t, const Tensor& like, std::int64_t time) {
  require_rank(operation, t, 4);
  require_dtype(operation, t, {like.dtype});
  if (t.dim(0) != like.dim(0) || t.dim(1) != time || t.dim(2) != like.dim(2) || t.dim(3) != like.dim(3))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: {} is [{}, {}, {}, {}]; expected [{}, {}, {}, {}]", operation, name,
                            t.dim(0), t.dim(1), t.dim(2), t.dim(3), like.dim(0), time, like.dim(2), like.dim(3)));
  if (t.dim(3) > 1 && t.step(3) != 1)
    reject(operation,
           fmt::format("{} has stride {} over the head dimension; expected 1: copy it first", name, t.step(3)));
  return {t.data, t.step(0), t.step(1), t.step(2)};
}

AttentionArgs attention_args(const char* operation, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& out, const Tensor& lse, const AttentionShape& shape) {
  require_rank(operation, q, 4);
  require_rank(operation, k, 4);
  require_dtype(operation, q, {DType::f32, DType::bf16});
  if (q.dim(3) == 0)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: the head dimension is 0; expected at least 1", operation));
  AttentionArgs args{};
  args.batch = q.dim(0);
  args.queries = q.dim(1);
  args.heads = q.dim(2);
  args.depth = q.dim(3);
  args.keys = k.dim(1);
  args.q = view_of(operation, "q", q, q, args.queries);
  args.k = view_of(operation, "k", k, q, args.keys);
  args.v = view_of(operation, "v", v, q, args.keys);
  args.out = view_of(operation, "out", out, q, args.queries);
  require_dtype(operation, lse, {DType::f32});
  require_contiguous(operation, lse);
  if (lse.elements() != args.batch * args.heads * args.queries)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: lse has {} elements; expected batch {} x heads {} x queries {}", operation,
                            lse.elements(), args.batch, args.heads, args.queries));
  args.lse = static_cast<float*>(lse.data);
  args.scale = shape.scale;
  args.causal = shape.causal;
  args.bf16 = q.dtype == DType::bf16;
  args.threads = omp_get_max_threads();
  return args;
}

}  // namespace

void CpuBackend::softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) {
  SoftmaxArgs args = softmax_args("softmax_forward", x, y, scale);
  args.causal = causal;
  if (!preparing()) loss_kernels(isa_).softmax_forward(args);
}

void CpuBackend::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) {
  SoftmaxArgs args = softmax_args("softmax_backward", y, dx, scale);
  require_alike("softmax_backward", y, dy);
  args.dy = dy.data;
  if (!preparing()) loss_kernels(isa_).softmax_backward(args);
}

void CpuBackend::attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                   const Tensor& lse, const AttentionShape& shape) {
  AttentionArgs args = attention_args("attention_forward", q, k, v, out, lse, shape);
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.forward_scratch_bytes(args)));
  if (!preparing()) kernels.forward(args);
}

void CpuBackend::attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                    const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                                    const Tensor& dv, const AttentionShape& shape) {
  constexpr const char* operation = "attention_backward";
  AttentionArgs args = attention_args(operation, q, k, v, out, lse, shape);
  args.dout = view_of(operation, "dout", dout, q, args.queries);
  args.dq = view_of(operation, "dq", dq, q, args.queries);
  args.dk = view_of(operation, "dk", dk, q, args.keys);
  args.dv = view_of(operation, "dv", dv, q, args.keys);
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.backward_scratch_bytes(args)));
  if (!preparing()) kernels.backward(args);
}

}  // namespace assay::cpu
