#include "assay/train/gradient_accumulation.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

namespace assay::train {

using compute::Tensor;

bool AddingGradients::is_gradient(const Tensor& t) const {
  if (!t || t.elements() == 0) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(t.data), begin = reinterpret_cast<std::uintptr_t>(gradients_.data);
  return begin <= at && at < begin + gradients_.bytes();
}

void AddingGradients::run_any(const compute::AnyOperation& operation) {
  std::visit(
      [this](const auto* op) {
        using Op = std::remove_cvref_t<decltype(*op)>;
        bool sums = false;
        compute::for_each_tensor(*op, [&](const char* name, const auto& tensor) {
          using Field = std::remove_cvref_t<decltype(tensor)>;
          if (!compute::is_written<Field> || !is_gradient(tensor)) return;
          if (!std::is_base_of_v<compute::OutOrSum, Field>)
            throw Error(ASSAY_INTERNAL, std::string(Op::name) + " writes a gradient, its '" + name +
                                            "', and cannot add to it; gradients of several micro-batches need that");
          sums = true;
        });
        if constexpr (requires(Op o) { o.accumulate = true; }) {
          if (sums) {
            Op adding = *op;
            adding.accumulate = true;
            return real().run(adding);
          }
        }
        real().run(*op);
      },
      operation);
}

}  // namespace assay::train
