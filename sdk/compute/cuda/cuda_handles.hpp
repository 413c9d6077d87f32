// What CUDA hands out, owned: each is destroyed with its object, and a failure to destroy is nobody's to handle.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "cuda_error.hpp"

namespace assay::cuda {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const noexcept {
    (void)destroy(handle);
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using GraphTemplate = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

struct FreeDeviceMemory {
  void operator()(void* address) const noexcept { (void)cudaFree(address); }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

struct FreeHostMemory {
  void operator()(void* address) const noexcept { (void)cudaFreeHost(address); }
};
using PinnedMemory = std::unique_ptr<void, FreeHostMemory>;

// Priorities of streams, which the nodes of graphs captured on them keep; a lower number goes first. The highest is
// that of communication's own stream (sdk/comm/nccl).
inline constexpr int priority_of_side_work = 0;
inline constexpr int priority_of_steps = -1;

// Never ordered against the legacy default stream.
inline Stream make_stream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "create a stream");
  return Stream(stream);
}

inline Event make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "create an event");
  return Event(event);
}

constexpr std::size_t round_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace assay::cuda
