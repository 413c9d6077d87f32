#include "slot.hpp"

#include <utility>

namespace attention {

using assay::compute::Tensor;

namespace {

std::string label_of(std::string name, const Tensor& t) {
  for (int i = 0; i < t.rank; ++i) name += (i == 0 ? " [" : ", ") + std::to_string(t.dim(i));
  return name + "] " + name_of(t.dtype);
}

}  // namespace

Slot::Slot(assay_memory_kind kind, std::string name, assay::compute::DType dtype,
           std::initializer_list<std::int64_t> dims)
    : kind_(kind), tensor_(nullptr, dtype, dims) {
  label_ = label_of(std::move(name), tensor_);
}

void Slot::take(const assay::Host& host) {
  if (tensor_) return;
  memory_ = assay::DeviceMemory(host, kind_, tensor_.bytes(), label_);
  tensor_.data = memory_.data();
}

void Slot::release() {
  memory_.reset();
  tensor_.data = nullptr;
}

void take(const assay::Host& host, const Slots& slots) {
  for (Slot* slot : slots) slot->take(host);
}

void release(const Slots& slots) {
  for (Slot* slot : slots) slot->release();
}

Slots joined(Slots first, const Slots& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace attention
