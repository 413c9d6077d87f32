// A tensor whose memory comes and goes, so that the account of a case shows what is held when.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/tensor.hpp>
#include <string>
#include <vector>

namespace attention {

class Slot {
 public:
  // `name` and the shape are what the record of a case without enough memory says: "scores [8, 1, 4096, 4096] bf16".
  Slot(assay_memory_kind kind, std::string name, assay::compute::DType dtype, std::initializer_list<std::int64_t> dims);

  // From here on the tensor is seen with its second and third dimension exchanged; its memory stays as it is.
  void exchange_middle() { exchanged_ = true, tensor_ = tensor_.transposed(1, 2); }
  // The tensor in the order of its memory, contiguous.
  assay::compute::Tensor in_memory_order() const { return exchanged_ ? tensor_.transposed(1, 2) : tensor_; }

  void take(const assay::Host& host);  // does nothing when it is held
  void release();
  operator const assay::compute::Tensor&() const { return tensor_; }
  const assay::compute::Tensor* operator->() const { return &tensor_; }
  const std::string& label() const { return label_; }

 private:
  assay_memory_kind kind_;
  std::string label_;
  assay::compute::Tensor tensor_;  // data is null while it is not held
  bool exchanged_ = false;
  assay::DeviceMemory memory_;
};

using Slots = std::vector<Slot*>;
void take(const assay::Host& host, const Slots& slots);  // in this order
void release(const Slots& slots);
Slots joined(Slots first, const Slots& second);

}  // namespace attention
