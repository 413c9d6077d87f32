// Tiled attention: 16-bit types through cuDNN, fp32 through a kernel of our own (cuDNN has none). Attention runs on the
// main lane only: cuDNN's plans belong to its stream.
#include <fmt/format.h>

#include "attention_plans.hpp"
#include "cuda_backend.hpp"
#include "kernels/attention_fp32.hpp"

namespace assay::cuda {
namespace {

struct Operands {
  const Tensor &q, &k, &v, &out, &lse;
  const Tensor *dout = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  bool backward() const { return dout != nullptr; }

  // Calls f(AttentionOperand, name, tensor, over keys) for each operand but lse.
  template <class F>
  void each(F&& f) const {
    f(AttentionOperand::q, "q", q, false);
    f(AttentionOperand::k, "k", k, true);
    f(AttentionOperand::v, "v", v, true);
    f(AttentionOperand::out, "out", out, false);
    if (!backward()) return;
    f(AttentionOperand::dout, "dout", *dout, false);
    f(AttentionOperand::dq, "dq", *dq, false);
    f(AttentionOperand::dk, "dk", *dk, true);
    f(AttentionOperand::dv, "dv", *dv, true);
  }
};

void require_operands(const char* operation, const Operands& o) {
  require_rank(operation, o.q, 4);
  require_rank(operation, o.k, 4);
  require_float(operation, o.q);
  require_head_dimension(operation, o.q);
  o.each([&](AttentionOperand, const char* name, const Tensor& t, bool over_keys) {
    require_operand(operation, name, t, o.q, over_keys ? o.k.dim(1) : o.q.dim(1));
  });
  require_lse(operation, o.lse, o.q);
}

// The graph of cuDNN that serves the operands; refuses what cuDNN is not trusted with.
AttentionKey cudnn_key(const char* operation, const Operands& o, const AttentionShape& shape) {
  AttentionKey key;
  key.dtype = o.q.dtype;
  key.batch = o.q.dim(0);
  key.queries = o.q.dim(1);
  key.heads = o.q.dim(2);
  key.depth = o.q.dim(3);
  key.keys = o.k.dim(1);
  key.causal = shape.causal;
  key.backward = o.backward();
  key.scale = shape.scale;
  key.dropout = shape.dropout.probability;
  const AttentionProblem problem{key.dtype, key.batch,  key.heads,    key.queries, key.keys,
                                 key.depth, key.causal, key.backward, key.dropout};
  if (const std::string why = attention_refusal(problem); !why.empty()) reject(operation, why);
  o.each([&](AttentionOperand operand, const char* name, const Tensor& t, bool) {
    if (const std::string why = attention_refusal(name, t); !why.empty()) reject(operation, why);
    key.set_strides(operand, t);
  });
  return key;
}

AttentionPointers pointers_of(const Operands& o) {
  AttentionPointers pointers{};
  o.each([&](AttentionOperand operand, const char*, const Tensor& t, bool) {
    pointers[static_cast<std::size_t>(operand)] = t.data;
  });
  pointers[static_cast<std::size_t>(AttentionOperand::lse)] = o.lse.data;
  return pointers;
}

AttentionFp32View view_of(const Tensor& t) { return {static_cast<float*>(t.data), t.step(0), t.step(1), t.step(2)}; }

AttentionFp32Args fp32_args(const char* operation, const Operands& o, const AttentionShape& shape) {
  if (o.q.dim(3) > attention_fp32_most_depth)
    reject(operation, fmt::format("head dimension {} given; fp32 attention serves at most {}: use more heads, or the "
                                  "naive attention",
                                  o.q.dim(3), attention_fp32_most_depth));
  if (o.q.dim(1) > attention_fp32_most_times || o.k.dim(1) > attention_fp32_most_times)
    reject(operation, fmt::format("{} queries and {} keys given; fp32 attention serves at most {}", o.q.dim(1),
                                  o.k.dim(1), attention_fp32_most_times));
  AttentionFp32Args args{};
  args.batch = o.q.dim(0);
  args.queries = static_cast<int>(o.q.dim(1));
  args.heads = o.q.dim(2);
  args.depth = static_cast<int>(o.q.dim(3));
  args.keys = static_cast<int>(o.k.dim(1));
  args.scale = shape.scale;
  args.causal = shape.causal;
  args.dropout = dropout_args(require_dropout(operation, shape.dropout), shape.dropout);
  args.q = view_of(o.q);
  args.k = view_of(o.k);
  args.v = view_of(o.v);
  args.out = view_of(o.out);
  args.lse = static_cast<float*>(o.lse.data);
  if (o.backward()) {
    args.dout = view_of(*o.dout);
    args.dq = view_of(*o.dq);
    args.dk = view_of(*o.dk);
    args.dv = view_of(*o.dv);
  }
  return args;
}

constexpr std::size_t random_bytes = 256;  // two numbers, and the alignment of what follows them

}  // namespace

void CudaBackend::run_cudnn(const char* operation, const AttentionKey& key, const AttentionPointers& pointers,
                            const Dropout& dropout) {
  // The side lane would need a handle of cuDNN and plans of its own; no workload attends there.
  if (lane_ != 0) reject(operation, "called between begin_side and end_side; 16-bit attention runs on the main lane");
  const DropoutRule rule = require_dropout(operation, dropout);
  const std::size_t head = key.dropout > 0.0F ? random_bytes : 0;
  auto* const memory =
      static_cast<char*>(scratch(head + (preparing() ? attentions_->prepare(key) : attentions_->workspace_bytes(key))));
  if (preparing()) return;
  auto* const random = reinterpret_cast<std::int64_t*>(memory);
  if (head) launch_attention_seed(stream(), dropout_args(rule, dropout), random);
  attentions_->execute(key, pointers, head ? random : nullptr, memory + head);
}

void CudaBackend::attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                    const Tensor& lse, const AttentionShape& shape) {
  constexpr const char* operation = "attention_forward";
  const Operands operands{q, k, v, out, lse};
  require_operands(operation, operands);
  if (q.dtype == DType::f32) {
    const AttentionFp32Args args = fp32_args(operation, operands, shape);
    if (!preparing()) attention_fp32_forward(args, stream());
    return;
  }
  if (out.elements() == 0) return;
  run_cudnn(operation, cudnn_key(operation, operands, shape), pointers_of(operands), shape.dropout);
}

void CudaBackend::attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                     const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                                     const Tensor& dv, const AttentionShape& shape) {
  constexpr const char* operation = "attention_backward";
  const Operands operands{q, k, v, out, lse, &dout, &dq, &dk, &dv};
  require_operands(operation, operands);
  if (q.dtype == DType::f32) {
    AttentionFp32Args args = fp32_args(operation, operands, shape);
    // The row sums of dout * out, [B, H, Tq].
    args.delta = static_cast<float*>(scratch(lse.bytes()));
    if (!preparing()) attention_fp32_backward(args, stream());
    return;
  }
  if (dq.elements() == 0 && dk.elements() == 0) return;
  run_cudnn(operation, cudnn_key(operation, operands, shape), pointers_of(operands), shape.dropout);
}

}  // namespace assay::cuda
