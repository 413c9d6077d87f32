// Addresses of no memory, which the tensors of a plan and of a parameter set have until they are bound, and the inputs
// of a step that is recorded: it knows them by these.
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace assay::train {

enum class UnboundMemory : std::uintptr_t {
  buffers = 1,
  gradients,
  parameters,
  compute_copy,
  inputs,
  messages,
  shown_gradients
};

inline void* unbound_place(UnboundMemory kind, std::size_t offset) {
  return reinterpret_cast<void*>((static_cast<std::uintptr_t>(kind) << compute::unbound_bit) + offset);
}

}  // namespace assay::train
