// What an operation's struct states about its tensors, so that checks, plans, verifications and tests can walk through
// the tensors of any operation without knowing it.
//
//   struct BiasBackward {
//     In dy;                    // T [..., C]
//     OutOrSum dbias;           // [C], fp32 or T
//     bool accumulate = false;  // add to dbias
//     ASSAY_OPERATION("bias_backward", dy, dbias)
//   };
//
//   for_each_tensor(op, [](const char* name, const auto& tensor) { ... });  // "dy" an In, "dbias" an OutOrSum
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace assay::compute {

// A Tensor, or what stands for one.
template <class T>
concept IsTensor = std::is_convertible_v<const T&, const Tensor&>;

// How an operation uses a tensor is the type of its field.
struct In : Tensor {  // read
  constexpr In() = default;
  template <IsTensor T>
  constexpr In(const T& t) : Tensor(static_cast<const Tensor&>(t)) {}
};
struct Out : Tensor {  // each element is written, and none is read before it is
  constexpr Out() = default;
  template <IsTensor T>
  constexpr Out(const T& t) : Tensor(static_cast<const Tensor&>(t)) {}
};
struct InOut : Tensor {  // read, and written
  constexpr InOut() = default;
  template <IsTensor T>
  constexpr InOut(const T& t) : Tensor(static_cast<const Tensor&>(t)) {}
};
struct OutOrSum : Tensor {  // an InOut where the operation's `accumulate` is set, else an Out
  constexpr OutOrSum() = default;
  template <IsTensor T>
  constexpr OutOrSum(const T& t) : Tensor(static_cast<const Tensor&>(t)) {}
};
// A tensor that may be left out, by being empty.
template <class Use>
struct Optional : Use {
  constexpr Optional() = default;
  template <IsTensor T>
  constexpr Optional(const T& t) : Use(static_cast<const Tensor&>(t)) {}
};

template <class Field>
inline constexpr bool may_be_empty = false;
template <class Use>
inline constexpr bool may_be_empty<Optional<Use>> = true;

// Whether `op` adds to its OutOrSum tensors.
template <class Op>
constexpr bool accumulates(const Op& op) {
  if constexpr (requires { op.accumulate; })
    return op.accumulate;
  else
    return false;
}
// Whether `op`, whose field this is, reads the tensor, and whether it writes it.
template <class Op, class Field>
constexpr bool reads(const Op& op, const Field&) {
  if constexpr (std::is_base_of_v<OutOrSum, Field>) return accumulates(op);
  return !std::is_base_of_v<Out, Field>;
}
template <class Field>
inline constexpr bool is_written = !std::is_base_of_v<In, Field>;

// Calls f(name, field) for each tensor of an operation, in the order of its declaration, those of its options too.
template <class Op, class F>
constexpr void for_each_tensor(Op&& op, F&& f) {
  std::remove_cvref_t<Op>::walk(op, f);
}

namespace detail {
template <class Field, class F>
constexpr void walk_field(const char* name, Field& field, F& f) {
  if constexpr (std::is_base_of_v<Tensor, std::remove_const_t<Field>>)
    f(name, field);
  else
    std::remove_const_t<Field>::walk(field, f);  // options that contain tensors
}
}  // namespace detail

// Two tensors of an operation that may be one: `out`, which is written, in the place of `in`.
struct InPlace {
  std::string_view out, in;
};
template <class Op>
constexpr std::span<const InPlace> pairs_in_place() {
  if constexpr (requires { Op::in_place; })
    return Op::in_place;
  else
    return {};
}

}  // namespace assay::compute

#define ASSAY_DETAIL_WALK(field) ::assay::compute::detail::walk_field(#field, self.field, f);
#define ASSAY_DETAIL_EACH_1(F, a) F(a)
#define ASSAY_DETAIL_EACH_2(F, a, ...) F(a) ASSAY_DETAIL_EACH_1(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_3(F, a, ...) F(a) ASSAY_DETAIL_EACH_2(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_4(F, a, ...) F(a) ASSAY_DETAIL_EACH_3(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_5(F, a, ...) F(a) ASSAY_DETAIL_EACH_4(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_6(F, a, ...) F(a) ASSAY_DETAIL_EACH_5(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_7(F, a, ...) F(a) ASSAY_DETAIL_EACH_6(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_8(F, a, ...) F(a) ASSAY_DETAIL_EACH_7(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_9(F, a, ...) F(a) ASSAY_DETAIL_EACH_8(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_10(F, a, ...) F(a) ASSAY_DETAIL_EACH_9(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_11(F, a, ...) F(a) ASSAY_DETAIL_EACH_10(F, __VA_ARGS__)
#define ASSAY_DETAIL_EACH_12(F, a, ...) F(a) ASSAY_DETAIL_EACH_11(F, __VA_ARGS__)
#define ASSAY_DETAIL_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define ASSAY_DETAIL_CONCAT(a, b) a##b
#define ASSAY_DETAIL_EACH_OF(n) ASSAY_DETAIL_CONCAT(ASSAY_DETAIL_EACH_, n)
#define ASSAY_DETAIL_EACH(F, ...) \
  ASSAY_DETAIL_EACH_OF(ASSAY_DETAIL_COUNT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1))(F, __VA_ARGS__)

// The fields of an options struct that are tensors, or options with tensors: at most twelve.
#define ASSAY_TENSORS(...)                            \
  template <class Self, class F>                      \
  static constexpr void walk(Self& self, F& f) {      \
    ASSAY_DETAIL_EACH(ASSAY_DETAIL_WALK, __VA_ARGS__) \
  }
// The name of an operation in messages and reports, and its tensors.
#define ASSAY_OPERATION(operation_name, ...)          \
  static constexpr const char* name = operation_name; \
  ASSAY_TENSORS(__VA_ARGS__)
