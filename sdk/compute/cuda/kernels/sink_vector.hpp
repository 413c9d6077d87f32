// Sinks of attention, or their gradients: a number for each head, fp32 or in the operands' type.
#pragma once
#include <assay/compute/tensor.hpp>

namespace assay::cuda {

struct SinkVector {
  void* data = nullptr;  // null: there are none
  compute::DType type = compute::DType::f32;

  SinkVector() = default;
  explicit SinkVector(const compute::Tensor& t) : data(t.data), type(t.dtype) {}
};

}  // namespace assay::cuda
