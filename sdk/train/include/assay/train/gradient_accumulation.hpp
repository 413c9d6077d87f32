// Gradients of several micro-batches, added up: the first one's operations write them, those of the others add to them.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <assay/train/parameters.hpp>

namespace assay::train {

// A backend that hands every operation on to another one, and has those that write a gradient of `parameters` add to it
// (their `accumulate` is set, so that the sum is a product's own, with no pass over the gradients). INTERNAL for an
// operation that writes one and cannot add.
class AddingGradients final : public compute::ForwardingBackend {
 public:
  // Both outlive it; the parameters are bound, or a step is being recorded.
  AddingGradients(compute::Backend& real, const ParameterSet& parameters);

  void run_any(const compute::AnyOperation& operation) override;

 private:
  bool is_gradient(const compute::Tensor& t) const;

  compute::Tensor gradients_;
};

}  // namespace assay::train
