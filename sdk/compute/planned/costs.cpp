#include "planned/costs.hpp"

#include <type_traits>

namespace assay::planned {
namespace {

using namespace compute;

std::uint64_t count(std::int64_t n) { return static_cast<std::uint64_t>(n); }

template <class Op>
std::uint64_t bytes_of(const Op& op) {
  std::uint64_t bytes = 0;
  for_each_tensor(op, [&](const char*, const auto& tensor) {
    using Field = std::remove_cvref_t<decltype(tensor)>;
    if (!tensor) return;
    bytes += (reads(op, tensor) ? tensor.bytes() : 0) + (is_written<Field> ? tensor.bytes() : 0);
  });
  return bytes;
}

assay_arithmetic arithmetic_of(DType type, ProductMath math) {
  switch (type) {
    case DType::f16: return ASSAY_ARITHMETIC_FP16;
    case DType::bf16: return ASSAY_ARITHMETIC_BF16;
    case DType::f8_e4m3:
    case DType::f8_e5m2: return ASSAY_ARITHMETIC_FP8;
    case DType::f32: return math == ProductMath::tf32 ? ASSAY_ARITHMETIC_TF32 : ASSAY_ARITHMETIC_FP32;
    default: return ASSAY_ARITHMETIC_UNSTATED;
  }
}

// Over all heads and sequences.
template <class Op>
std::uint64_t pairs_of(const Op& op) {
  if (op.shape.documents.first_keys) return count(op.q.dim(2) * op.shape.documents.pairs);
  return count(op.q.dim(0) * op.q.dim(2) *
               compute::visible_pairs(op.q.dim(1), op.k.dim(1), op.shape.causal, op.shape.window));
}

struct Cost {
  ProductMath math;
  assay_planned_operation result{};

  template <class Op>
  void set(const Op&, assay_operation_kind kind, std::uint64_t flops, std::uint64_t bytes,
           assay_arithmetic arithmetic) {
    result = {sizeof result, Op::name, kind, arithmetic, flops, bytes};
  }
  void operator()(const op::Matmul& op) {
    const std::int64_t inner = op.transpose_a ? op.a.dim(-2) : op.a.dim(-1);
    set(op, ASSAY_OPERATION_PRODUCT, 2 * count(op.c.elements()) * count(inner), bytes_of(op),
        arithmetic_of(op.a.dtype, math));
  }
  // All rows as if each had a group, and the matrices of all groups: who goes where is not known yet.
  void operator()(const op::GroupedMatmul& op) {
    set(op, ASSAY_OPERATION_PRODUCT, 2 * count(op.c.elements()) * count(op.a.dim(1)), bytes_of(op),
        arithmetic_of(op.a.dtype, math));
  }
  void operator()(const op::GroupedWeightGradient& op) {
    set(op, ASSAY_OPERATION_PRODUCT, 2 * count(op.dy.elements()) * count(op.x.dim(1)), bytes_of(op),
        arithmetic_of(op.dy.dtype, math));
  }
  // Two products of the forward, one of them over the values' width; five of the backward, which makes the scores
  // again: two over it.
  void operator()(const op::AttentionForward& op) {
    set(op, ASSAY_OPERATION_ATTENTION, 2 * pairs_of(op) * count(op.q.dim(3) + op.v.dim(3)), bytes_of(op),
        arithmetic_of(op.q.dtype, ProductMath::exact));
  }
  void operator()(const op::AttentionBackward& op) {
    set(op, ASSAY_OPERATION_ATTENTION, 2 * pairs_of(op) * count(3 * op.q.dim(3) + 2 * op.v.dim(3)), bytes_of(op),
        arithmetic_of(op.q.dtype, ProductMath::exact));
  }
  // Of the table the rows alone that are looked up.
  void operator()(const op::EmbeddingForward& op) {
    const std::uint64_t rows_bytes = count(op.out.elements()) * size_of(op.table.dtype);
    set(op, ASSAY_OPERATION_OTHER, 0, rows_bytes + op.out.bytes() + op.ids.bytes(), ASSAY_ARITHMETIC_UNSTATED);
  }
  // Of the arenas the places alone.
  void operator()(const op::SpoilPlaces& op) { set_account(op, op.places, 1); }
  void operator()(const op::MarkStep& op) { set_account(op, op.places, 2); }
  template <class Op>
  void set_account(const Op& op, const Tensor& places, std::uint64_t tensors) {
    const std::uint64_t bytes = places.bytes() + tensors * count(places.elements()) * sizeof(float);
    set(op, ASSAY_OPERATION_OTHER, 0, bytes, ASSAY_ARITHMETIC_UNSTATED);
  }
  template <class Op>
  void operator()(const Op& op) {
    set(op, ASSAY_OPERATION_OTHER, 0, bytes_of(op), ASSAY_ARITHMETIC_UNSTATED);
  }
};

}  // namespace

assay_planned_operation cost_of(const AnyOperation& operation, ProductMath math) {
  Cost cost{math};
  std::visit([&](const auto* op) { cost(*op); }, operation);
  return cost.result;
}

}  // namespace assay::planned
