// The operands of an attention operation, and whether kernels serve them: cuDNN's of 16-bit types, and our own of fp32.
// Plain C++: the backend uses it, and the device that stands in for a GPU (compute/planned).
#pragma once
#include <assay/compute/operations/attention.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "attention_guards.hpp"

namespace assay::cuda {

// The operands of both passes. The forward uses the first six; only it reads sinks, where there are any.
enum class AttentionOperand : std::size_t { q, k, v, out, lse, sinks, dout, dq, dk, dv, count };
inline constexpr std::size_t attention_operands = static_cast<std::size_t>(AttentionOperand::count);

inline constexpr std::int64_t attention_fp32_most_depth = 256;
inline constexpr std::int64_t attention_fp32_most_times = std::int64_t{1} << 30;  // positions are ints in the kernels

template <class Op>
inline constexpr bool is_backward = std::is_same_v<Op, compute::op::AttentionBackward>;

// Calls f(AttentionOperand, name, tensor) for each operand but lse and sinks.
template <class Op, class F>
void each_operand(const Op& op, F&& f) {
  f(AttentionOperand::q, "q", op.q);
  f(AttentionOperand::k, "k", op.k);
  f(AttentionOperand::v, "v", op.v);
  f(AttentionOperand::out, "out", op.out);
  if constexpr (is_backward<Op>) {
    f(AttentionOperand::dout, "dout", op.dout);
    f(AttentionOperand::dq, "dq", op.dq);
    f(AttentionOperand::dk, "dk", op.dk);
    f(AttentionOperand::dv, "dv", op.dv);
  }
}

// Scratch of 16-bit attention for a copy of its sinks, which cuDNN reads as fp32.
inline std::size_t sinks_copy_bytes(const compute::Tensor& sinks) {
  constexpr std::size_t alignment = 256;
  if (sinks.dtype == compute::DType::f32) return 0;
  return (static_cast<std::size_t>(sinks.elements()) * sizeof(float) + alignment - 1) / alignment * alignment;
}

// Documents packed in the sequences; 0: none.
template <class Op>
std::int64_t documents_of(const Op& op) {
  return op.shape.documents.starts ? op.shape.documents.starts.elements() - 1 : 0;
}

// The window where it hides a key: the last query is at the place of the last key, of a sequence or of the longest
// document.
template <class Op>
std::int64_t window_of(const Op& op) {
  const std::int64_t keys = documents_of(op) > 0 ? op.shape.documents.longest : op.k.dim(1);
  return op.shape.window < keys ? op.shape.window : 0;
}

// Scratch of 16-bit attention with documents: where they lie in the operands (kernels/attention_documents.hpp), and the
// log-sum-exps token by token.
inline std::size_t document_tables_bytes(std::int64_t documents) {
  constexpr std::size_t alignment = 256;
  const auto count = static_cast<std::size_t>(documents);
  const std::size_t bytes = attention_operands * (count + 1) * sizeof(std::int64_t) + count * sizeof(std::int32_t);
  return (bytes + alignment - 1) / alignment * alignment;
}
inline std::size_t lse_copy_bytes(const compute::Tensor& lse) {
  constexpr std::size_t alignment = 256;
  return (lse.bytes() + alignment - 1) / alignment * alignment;
}

template <class Op>
AttentionProblem problem_of(const Op& op) {
  return {op.q.dtype,
          op.q.dim(0),
          op.q.dim(2),
          op.q.dim(1),
          op.k.dim(1),
          op.q.dim(3),
          op.shape.causal,
          is_backward<Op>,
          op.shape.dropout.probability,
          op.k.dim(2),
          window_of(op),
          op.shape.soft_cap,
          static_cast<bool>(op.sinks),
          op.v.dim(3) == op.q.dim(3) ? 0 : op.v.dim(3),
          documents_of(op),
          op.shape.documents.longest};
}

// Why no kernel serves the operation, as a sentence; empty when one does.
template <class Op>
std::string refusal_of(const Op& op) {
  using std::to_string;
  if (op.q.dtype != compute::DType::f32) {
    std::string why = attention_refusal(problem_of(op));
    each_operand(op, [&](AttentionOperand, const char* name, const compute::Tensor& t) {
      if (why.empty()) why = attention_refusal(name, t, documents_of(op) > 0);
    });
    return why;
  }
  if (op.q.dim(3) > attention_fp32_most_depth)
    return "head dimension " + to_string(op.q.dim(3)) + " given; fp32 attention serves at most " +
           to_string(attention_fp32_most_depth) + ": use more heads, or the naive attention";
  if (op.v.dim(3) > attention_fp32_most_depth)
    return "values of width " + to_string(op.v.dim(3)) + " given; fp32 attention serves at most " +
           to_string(attention_fp32_most_depth) + ": use more heads, or the naive attention";
  if (op.q.dim(1) > attention_fp32_most_times || op.k.dim(1) > attention_fp32_most_times)
    return to_string(op.q.dim(1)) + " queries and " + to_string(op.k.dim(1)) +
           " keys given; fp32 attention serves at most " + to_string(attention_fp32_most_times);
  return "";
}

}  // namespace assay::cuda
