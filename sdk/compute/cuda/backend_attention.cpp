// Tiled attention: 16-bit types through cuDNN, fp32 through our own kernel (cuDNN has none). Attention runs on the
// main lane only: cuDNN's plans belong to its stream.
#include "attention_operands.hpp"
#include "attention_plans.hpp"
#include "cuda_backend.hpp"
#include "kernels/attention_documents.hpp"
#include "kernels/attention_fp32.hpp"
#include "kernels/attention_sinks.hpp"

namespace assay::cuda {
namespace {

template <class Op>
void require_served(const Op& op) {
  if (const std::string why = refusal_of(op); !why.empty()) reject(op.name, why);
}

// The graph of cuDNN that serves the operands; refuses what cuDNN is not trusted with.
template <class Op>
AttentionKey cudnn_key(const Op& op) {
  require_served(op);
  AttentionKey key;
  key.dtype = op.q.dtype;
  key.batch = op.q.dim(0);
  key.queries = op.q.dim(1);
  key.heads = op.q.dim(2);
  key.depth = op.q.dim(3);
  key.value_depth = op.v.dim(3);
  key.keys = op.k.dim(1);
  key.key_heads = op.k.dim(2);
  key.causal = op.shape.causal;
  key.window = window_of(op);
  key.soft_cap = op.shape.soft_cap;
  key.sinks = op.sinks && !is_backward<Op>;
  key.backward = is_backward<Op>;
  key.scale = op.shape.scale;
  key.dropout = op.shape.dropout.probability;
  key.documents = documents_of(op);
  key.longest = key.documents > 0 ? op.shape.documents.longest : 0;
  each_operand(op, [&](AttentionOperand operand, const char*, const Tensor& t) { key.set_strides(operand, t); });
  return key;
}

template <class Op>
AttentionPointers pointers_of(const Op& op) {
  AttentionPointers pointers{};
  each_operand(op, [&](AttentionOperand operand, const char*, const Tensor& t) {
    pointers[static_cast<std::size_t>(operand)] = t.data;
  });
  pointers[static_cast<std::size_t>(AttentionOperand::lse)] = op.lse.data;
  pointers[static_cast<std::size_t>(AttentionOperand::sinks)] = op.sinks.data;
  return pointers;
}

AttentionFp32View view_of(const Tensor& t) { return {data_of<float>(t), t.step(0), t.step(1), t.step(2)}; }

template <class Op>
AttentionFp32Args fp32_args(const Op& op) {
  require_served(op);
  AttentionFp32Args args{};
  args.batch = op.q.dim(0);
  args.queries = static_cast<int>(op.q.dim(1));
  args.heads = op.q.dim(2);
  args.depth = static_cast<int>(op.q.dim(3));
  args.value_depth = static_cast<int>(op.v.dim(3));
  args.keys = static_cast<int>(op.k.dim(1));
  args.key_heads = op.k.dim(2);
  args.group = args.key_heads > 0 ? static_cast<int>(args.heads / args.key_heads) : 1;
  args.scale = op.shape.scale;
  args.causal = op.shape.causal;
  args.window = static_cast<int>(window_of(op));
  args.soft_cap = op.shape.soft_cap;
  if (op.shape.documents.first_keys) args.first_keys = data_of<std::int32_t>(op.shape.documents.first_keys);
  if (op.sinks) args.sinks = data_of<float>(op.sinks);
  args.dropout = dropout_args(op.shape.dropout);
  args.q = view_of(op.q);
  args.k = view_of(op.k);
  args.v = view_of(op.v);
  args.out = view_of(op.out);
  args.lse = data_of<float>(op.lse);
  if constexpr (is_backward<Op>) {
    args.dout = view_of(op.dout);
    args.dq = view_of(op.dq);
    args.dk = view_of(op.dk);
    args.dv = view_of(op.dv);
  }
  return args;
}

SinkView sink_view(const Tensor& t) { return {t.data, t.step(0), t.step(1), t.step(2)}; }

SinkArgs sink_args(const op::AttentionBackward& op) {
  SinkArgs args{};
  args.type = op.q.dtype;
  args.batch = op.q.dim(0);
  args.queries = op.q.dim(1);
  args.heads = op.q.dim(2);
  args.depth = op.out.dim(3);
  args.out = sink_view(op.out);
  args.dout = sink_view(op.dout);
  args.lse = data_of<float>(op.lse);
  args.sinks = SinkVector(op.sinks);
  args.dsinks = SinkVector(op.dsinks);
  args.accumulate = op.accumulate;
  return args;
}

constexpr std::size_t random_bytes = 256;  // two numbers, and the alignment of what follows them

}  // namespace

void CudaBackend::run_cudnn(const char* operation, const AttentionKey& key, AttentionPointers pointers,
                            const AttentionShape& shape, const Tensor& sinks, const Tensor& lse) {
  // The side lane would need its own cuDNN handle and plans; no workload attends there.
  if (lane_ != 0) reject(operation, "called between begin_side and end_side; 16-bit attention runs on the main lane");
  const std::size_t of_random = key.dropout > 0.0F ? random_bytes : 0,
                    of_sinks = key.sinks ? sinks_copy_bytes(sinks) : 0;
  const bool packed = key.documents > 0;
  const std::size_t of_tables = packed ? document_tables_bytes(key.documents) : 0,
                    of_lse = packed ? lse_copy_bytes(lse) : 0;
  const std::size_t head = of_random + of_sinks + of_tables + of_lse;
  if (preparing()) {
    attentions_->start(key);
    postponed_.add([this, key, head, lane = lane_] { want_scratch(lane, head + attentions_->prepare(key)); });
    return;
  }
  auto* const memory = static_cast<char*>(scratch(head + attentions_->workspace_bytes(key)));
  AttentionTables tables{of_random ? reinterpret_cast<std::int64_t*>(memory) : nullptr, {}};
  if (of_random) launch_attention_seed(stream(), dropout_args(shape.dropout), tables.random);
  if (of_sinks) {
    auto* const copy = reinterpret_cast<float*>(memory + of_random);
    launch_copy_of_sinks(SinkVector(sinks), copy, key.heads, stream());
    pointers[static_cast<std::size_t>(AttentionOperand::sinks)] = copy;
  }
  if (!packed) return attentions_->execute(key, pointers, tables, memory + head);
  tables.documents = document_tables_in(memory + of_random + of_sinks, key.documents);
  launch_document_tables(data_of<std::int32_t>(shape.documents.starts), key.documents, key.token_strides(),
                         tables.documents, stream());
  auto* const by_token = reinterpret_cast<float*>(memory + of_random + of_sinks + of_tables);
  pointers[static_cast<std::size_t>(AttentionOperand::lse)] = by_token;
  if (key.backward) launch_lse_by_token(data_of<float>(lse), by_token, key.batch, key.heads, key.queries, stream());
  attentions_->execute(key, pointers, tables, memory + head);
  if (!key.backward) launch_lse_by_head(by_token, data_of<float>(lse), key.batch, key.heads, key.queries, stream());
}

void CudaBackend::execute(const op::AttentionForward& op) {
  if (op.q.dtype == DType::f32) {
    const AttentionFp32Args args = fp32_args(op);
    if (!preparing()) attention_fp32_forward(args, stream());
    return;
  }
  if (op.out.elements() == 0) return;
  run_cudnn(op.name, cudnn_key(op), pointers_of(op), op.shape, op.sinks, op.lse);
}

void CudaBackend::execute(const op::AttentionBackward& op) {
  // Before the others: gradients may lie where inputs do.
  if (op.sinks && !preparing()) launch_attention_sink_gradients(sink_args(op), stream());
  if (op.q.dtype == DType::f32) {
    AttentionFp32Args args = fp32_args(op);
    // The row sums of dout * out, [B, H, Tq].
    args.delta = static_cast<float*>(scratch(op.lse.bytes()));
    if (!preparing()) attention_fp32_backward(args, stream());
    return;
  }
  if (op.dq.elements() == 0 && op.dk.elements() == 0) return;
  run_cudnn(op.name, cudnn_key(op), pointers_of(op), op.shape, op.sinks, op.lse);
}

}  // namespace assay::cuda
