// Softmax and tiled attention, and scratch.
#include <omp.h>

#include "cpu_backend.hpp"
#include "kernels/attention.hpp"
#include "kernels/loss.hpp"

namespace assay::cpu {
namespace {

SoftmaxArgs softmax_args(const Tensor& x, const Tensor& out, float scale) {
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

SinkVector sink_vector(const Tensor& t) { return {t.data, t.dtype == DType::bf16}; }

template <class Op>
void set_kind(SoftmaxArgs& args, const Op& op) {
  args.soft_cap = op.soft_cap;
  if (op.lse) args.lse = data_of<float>(op.lse);
  args.sinks = sink_vector(op.sinks);
  args.heads = op.sinks.elements();
}

AttentionView view_of(const Tensor& t) { return {t.data, t.step(0), t.step(1), t.step(2)}; }

template <class Op>
AttentionArgs attention_args(const Op& op) {
  const Tensor& q = op.q;
  AttentionArgs args{};
  args.batch = q.dim(0);
  args.queries = q.dim(1);
  args.heads = q.dim(2);
  args.depth = q.dim(3);
  args.value_depth = op.v.dim(3);
  args.keys = op.k.dim(1);
  args.key_heads = op.k.dim(2);
  args.q = view_of(q);
  args.k = view_of(op.k);
  args.v = view_of(op.v);
  args.out = view_of(op.out);
  args.lse = data_of<float>(op.lse);
  args.scale = op.shape.scale;
  args.causal = op.shape.causal;
  args.window = op.shape.window;
  args.soft_cap = op.shape.soft_cap;
  if (op.shape.documents.first_keys) args.first_keys = data_of<std::int32_t>(op.shape.documents.first_keys);
  args.sinks = sink_vector(op.sinks);
  args.bf16 = q.dtype == DType::bf16;
  args.threads = omp_get_max_threads();
  return args;
}

}  // namespace

void CpuBackend::execute(const op::SoftmaxForward& op) {
  SoftmaxArgs args = softmax_args(op.x, op.y, op.scale);
  args.causal = op.causal;
  args.window = op.window;
  if (op.first_keys) {
    args.first_keys = data_of<std::int32_t>(op.first_keys);
    args.first_keys_stride = op.first_keys.step(0);
    args.rows_of_sequence = op.x.dim(1) * op.x.dim(2);
  }
  set_kind(args, op);
  if (!preparing()) loss_kernels(isa_).softmax_forward(args);
}

void CpuBackend::execute(const op::SoftmaxBackward& op) {
  SoftmaxArgs args = softmax_args(op.y, op.dx, op.scale);
  args.dy = op.dy.data;
  set_kind(args, op);
  args.dsinks = sink_vector(op.dsinks);
  args.accumulate = op.accumulate;
  if (!preparing()) loss_kernels(isa_).softmax_backward(args);
}

void CpuBackend::execute(const op::AttentionForward& op) {
  AttentionArgs args = attention_args(op);
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.forward_scratch_bytes(args)));
  if (preparing()) return;
  args.dropout = dropout_args(op.shape.dropout);
  kernels.forward(args);
}

void CpuBackend::execute(const op::AttentionBackward& op) {
  AttentionArgs args = attention_args(op);
  args.dout = view_of(op.dout);
  args.dq = view_of(op.dq);
  args.dk = view_of(op.dk);
  args.dv = view_of(op.dv);
  args.dsinks = sink_vector(op.dsinks);
  args.accumulate = op.accumulate;
  const AttentionKernels& kernels = attention_kernels(isa_);
  args.scratch = scratch(static_cast<std::size_t>(kernels.backward_scratch_bytes(args)));
  if (preparing()) return;
  args.dropout = dropout_args(op.shape.dropout);
  kernels.backward(args);
}

}  // namespace assay::cpu
