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

  void take(const assay::Host& host);  // does nothing when it is held
  void release();
  operator const assay::compute::Tensor&() const { return tensor_; }
  const assay::compute::Tensor* operator->() const { return &tensor_; }
  const std::string& label() const { return label_; }

 private:
  assay_memory_kind kind_;
  std::string label_;
  assay::compute::Tensor tensor_;  // data is null while it is not held
  assay::DeviceMemory memory_;
};

using Slots = std::vector<Slot*>;
void take(const assay::Host& host, const Slots& slots);  // in this order
void release(const Slots& slots);

}  // namespace attention
