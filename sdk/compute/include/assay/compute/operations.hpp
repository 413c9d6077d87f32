// The operations that workloads consist of: a struct for each, whose fields are its tensors and options, with shapes
// and formula beside them. A backend runs them: `backend.run(op::Matmul{.a = x, .b = w, .c = y, .transpose_b = true})`.
//
// Notation: T is one floating-point type: fp32 or bf16, on CUDA also fp16; "rows" are all dimensions but the last,
// flattened. Statistics, losses and every accumulation are fp32. Tensors are contiguous unless an operation states that
// it supports strides. A written tensor may not share memory with another tensor of the operation, except one that
// `in_place` names: it may take the place of another with the same address, type, shape and strides.
//
// A new operation is a struct in a file of operations/, a row in the list at its end, a check (common/), a kernel and a
// call of it for each device. Code that walks the list (backends, audits, mutants, conformance) does not link until it
// handles the new one.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/account.hpp>
#include <assay/compute/operations/attention.hpp>
#include <assay/compute/operations/data.hpp>
#include <assay/compute/operations/elementwise.hpp>
#include <assay/compute/operations/embedding.hpp>
#include <assay/compute/operations/experts.hpp>
#include <assay/compute/operations/formats.hpp>
#include <assay/compute/operations/losses.hpp>
#include <assay/compute/operations/norms.hpp>
#include <assay/compute/operations/optimizers.hpp>
#include <assay/compute/operations/products.hpp>
#include <assay/compute/operations/reductions.hpp>

#include <cstddef>
#include <utility>
#include <variant>

// All operations: the list at the end of each theme. X(name of the struct in assay::compute::op)
// clang-format off
#define ASSAY_OPERATIONS(X) \
  ASSAY_OPERATIONS_OF_DATA(X) \
  ASSAY_OPERATIONS_OF_PRODUCTS(X) \
  ASSAY_OPERATIONS_OF_ELEMENTWISE(X) \
  ASSAY_OPERATIONS_OF_FORMATS(X) \
  ASSAY_OPERATIONS_OF_EMBEDDING(X) \
  ASSAY_OPERATIONS_OF_NORMS(X) \
  ASSAY_OPERATIONS_OF_ATTENTION(X) \
  ASSAY_OPERATIONS_OF_EXPERTS(X) \
  ASSAY_OPERATIONS_OF_LOSSES(X) \
  ASSAY_OPERATIONS_OF_REDUCTIONS(X) \
  ASSAY_OPERATIONS_OF_OPTIMIZERS(X) \
  ASSAY_OPERATIONS_OF_ACCOUNT(X)
// clang-format on

namespace assay::compute {

template <class... Op>
struct OperationList {
  static constexpr std::size_t size = sizeof...(Op);
  using Any = std::variant<const Op*...>;
  // Calls f(std::type_identity<Op>()) for each.
  template <class F>
  static void for_each(F&& f) {
    (f(std::type_identity<Op>()), ...);
  }
};

namespace detail {
template <class First, class... Op>
OperationList<Op...> without_first(OperationList<First, Op...>);
}
#define ASSAY_DETAIL_LISTED(Name) , op::Name
using Operations = decltype(detail::without_first(OperationList<void ASSAY_OPERATIONS(ASSAY_DETAIL_LISTED)>()));
#undef ASSAY_DETAIL_LISTED

// One of them, wherever it stands.
using AnyOperation = Operations::Any;

// Calls the best of `f` with the operation; [](const auto& operation) { ... } is for those that no other one takes.
template <class... F>
void visit_operation(const AnyOperation& any, F&&... f) {
  struct Overloads : std::remove_cvref_t<F>... {
    using std::remove_cvref_t<F>::operator()...;
  };
  Overloads overloads{std::forward<F>(f)...};
  std::visit([&](const auto* operation) { overloads(*operation); }, any);
}

// The operation, if it is one of this kind; else null.
template <class Op>
const Op* operation_cast(const AnyOperation& any) {
  const auto* const found = std::get_if<const Op*>(&any);
  return found ? *found : nullptr;
}

inline const char* name_of(const AnyOperation& any) {
  return std::visit([](const auto* operation) { return operation->name; }, any);
}

}  // namespace assay::compute
