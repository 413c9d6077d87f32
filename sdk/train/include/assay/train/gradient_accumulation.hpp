// Gradients of several micro-batches, added up: the first one's operations write them, those of the others add to them.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

namespace assay::train {

// A backend that passes every operation on to another one, and lets those that write into the memory of gradients add
// to it (it sets their `accumulate`, so the product itself makes the sum, with no pass over the gradients). INTERNAL
// for an operation that writes there and cannot add.
class AddingGradients final : public compute::ForwardingBackend {
 public:
  // `gradients`: all of them, contiguous. The backend outlives it.
  AddingGradients(compute::Backend& real, const compute::Tensor& gradients)
      : ForwardingBackend(real), gradients_(gradients) {}

  void run_any(const compute::AnyOperation& operation) override;

 private:
  bool is_gradient(const compute::Tensor& t) const;

  compute::Tensor gradients_;
};

}  // namespace assay::train
