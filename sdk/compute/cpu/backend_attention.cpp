// Softmax and tiled attention: argument checks and scratch.
#include <fmt/format.h>
#include <omp.h>

#include "cpu_backend.hpp"
#include "kernels/attention.hpp"
#include "kernels/loss.hpp"

namespace assay::cpu {
namespace {

SoftmaxArgs softmax_args(const char* operation, const Tensor& x, const Tensor& out, float scale) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_like(operation, x, out);
  require_some_columns(operation, x);
  SoftmaxArgs args{};
  args.bf16 = x.dtype == DType::bf16;
  args.x = x.data;
  args.out = out.data;
  args.columns = x.dim(-1);
  args.rows = rows_of(x);
  args.scale = scale;
  args.queries = x.rank >= 2 ? x.dim(-2) : 1;
  return args;
}

AttentionView view_of(const char* operation, const char* name, const Tensor& t, const Tensor& like, std::int64_t time) {
  require_operand(operation, name, t, like, time);
  return {t.data, t.step(0), t.step(1), t.step(2)};
}

AttentionArgs attention_args(const char* operation, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& out, const Tensor& lse, const AttentionShape& shape) {
  require_rank(operation, q, 4);
  require_rank(operation, k, 4);
  require_float(operation, q);
  require_head_dimension(operation, q);
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
  args.lse = require_lse(operation, lse, q);
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
  require_like("softmax_backward", y, dy);
  args.dy = dy.data;
  if (!preparing()) loss_kernels(isa_).softmax_backward(args);
}

void CpuBackend::attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                   const Tensor& lse, const AttentionShape& shape) {
  constexpr const char* operation = "attention_forward";
  AttentionArgs args = attention_args(operation, q, k, v, out, lse, shape);
  const DropoutRule rule = require_dropout(operation, shape.dropout);
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.forward_scratch_bytes(args)));
  if (preparing()) return;
  args.dropout = dropout_args(rule, shape.dropout);
  kernels.forward(args);
}

void CpuBackend::attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                    const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                                    const Tensor& dv, const AttentionShape& shape) {
  constexpr const char* operation = "attention_backward";
  AttentionArgs args = attention_args(operation, q, k, v, out, lse, shape);
  const DropoutRule rule = require_dropout(operation, shape.dropout);
  args.dout = view_of(operation, "dout", dout, q, args.queries);
  args.dq = view_of(operation, "dq", dq, q, args.queries);
  args.dk = view_of(operation, "dk", dk, q, args.keys);
  args.dv = view_of(operation, "dv", dv, q, args.keys);
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.backward_scratch_bytes(args)));
  if (preparing()) return;
  args.dropout = dropout_args(rule, shape.dropout);
  kernels.backward(args);
}

}  // namespace assay::cpu
