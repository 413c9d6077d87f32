// What each operation asks of its tensors, the same on every device. Compiled into each backend, as checks.hpp;
// ASSAY_DEVICE_HAS_FP16 says whether it computes in fp16.
#pragma once
#include <assay/compute/operations.hpp>

#include <array>
#include <span>

#include "common/checks.hpp"

namespace assay::compute {

// Types, shapes and ranges of one operation: what its struct says of them. Throws assay::Error.
#define ASSAY_DECLARE_CHECK(Name) void check(const op::Name& op);
ASSAY_OPERATIONS(ASSAY_DECLARE_CHECK)
#undef ASSAY_DECLARE_CHECK

// A tensor of an operation, whichever it is.
struct TensorUse {
  const char* name;
  const Tensor* tensor;
  bool written, may_be_empty;
};
// That what must be there is there.
void require_tensors(const char* operation, std::span<const TensorUse> tensors);
// That no tensor that is written shares memory with another one, but for those that may be one and are.
void require_places(const char* operation, std::span<const TensorUse> tensors, std::span<const InPlace> in_place);

inline constexpr std::size_t most_tensors = 16;

template <class Op>
constexpr std::size_t count_tensors() {
  std::size_t count = 0;
  for_each_tensor(Op{}, [&](const char*, const Tensor&) { ++count; });
  return count;
}

// All that is asked of an operation.
template <class Op>
void check_all(const Op& operation) {
  static_assert(count_tensors<Op>() <= most_tensors);
  std::array<TensorUse, count_tensors<Op>()> uses;
  std::size_t count = 0;
  for_each_tensor(operation, [&](const char* name, const auto& tensor) {
    using Field = std::remove_cvref_t<decltype(tensor)>;
    uses[count++] = {name, &tensor, is_written<Field>, may_be_empty<Field>};
  });
  require_tensors(operation.name, {uses.data(), count});
  check(operation);
  require_places(operation.name, {uses.data(), count}, pairs_in_place<Op>());
}

// What a backend's run_any() does: checks the operation, then calls `execute` with it.
template <class F>
void run_checked(const AnyOperation& any, F&& execute) {
  std::visit(
      [&](const auto* operation) {
        check_all(*operation);
        execute(*operation);
      },
      any);
}

}  // namespace assay::compute
