// Feeds: page-locked host buffers and a stream that copies from them beside the compute stream.
#include <fmt/format.h>

#include <vector>

#include "cuda_backend.hpp"

namespace assay::cuda {
namespace {

PinnedMemory page_locked(std::size_t bytes) {
  void* address = nullptr;
  check(cudaHostAlloc(&address, bytes, cudaHostAllocDefault),
        fmt::format("page-lock {} bytes of host memory for a feed", bytes).c_str());
  return PinnedMemory(address);
}

class CudaFeed final : public Feed {
 public:
  CudaFeed(const Mode& mode, cudaStream_t compute, std::size_t slots, std::size_t bytes_per_slot, void* device_memory)
      : mode_(mode),
        compute_(compute),
        bytes_per_slot_(bytes_per_slot),
        step_(feed_slot_step(slots, bytes_per_slot, device_memory)),
        twins_(static_cast<char*>(device_memory)),
        host_(page_locked(slots * step_)),
        copies_(make_stream(priority_of_side_work)),
        slots_(slots),
        sent_(slots) {
    for (Slot& s : slots_) {
      s.sent = make_event(cudaEventDisableTiming | cudaEventBlockingSync);  // reclaim() sleeps: the loader has work
      s.delivered = make_event(cudaEventDisableTiming);
    }
  }
  // What still runs reads memory that goes now.
  ~CudaFeed() override { (void)cudaStreamSynchronize(copies_.get()); }

  void* host_buffer(std::size_t slot) const override {
    require_feed_slot("host_buffer", slot, slots_.size());
    return static_cast<char*>(host_.get()) + slot * step_;
  }

  // The copy does not belong to a step: it is made in either mode.
  void send(std::size_t slot) override {
    void* const from = host_buffer(slot);
    const Slot& s = slots_[slot];
    check(cudaStreamWaitEvent(copies_.get(), s.delivered.get(), 0), "send of a feed");
    check(cudaMemcpyAsync(twins_ + slot * step_, from, bytes_per_slot_, cudaMemcpyHostToDevice, copies_.get()),
          "send of a feed");
    check(cudaEventRecord(s.sent.get(), copies_.get()), "send of a feed");
    sent_.send(slot);
  }

  void deliver(std::size_t slot, const Tensor& to) override {
    require_feed_slot("deliver", slot, slots_.size());
    require_delivery(to, bytes_per_slot_);
    if (mode_ == Mode::prepare) return;
    sent_.deliver(slot);  // an event that was never recorded makes nobody wait
    const Slot& s = slots_[slot];
    check(cudaStreamWaitEvent(compute_, s.sent.get(), 0), "deliver of a feed");
    if (to.bytes() > 0)
      check(cudaMemcpyAsync(to.data, twins_ + slot * step_, to.bytes(), cudaMemcpyDeviceToDevice, compute_),
            "deliver of a feed");
    check(cudaEventRecord(s.delivered.get(), compute_), "deliver of a feed");
  }

  void reclaim(std::size_t slot) override {
    require_feed_slot("reclaim", slot, slots_.size());
    check(cudaEventSynchronize(slots_[slot].sent.get()), "reclaim of a feed");
  }

 private:
  struct Slot {
    Event sent, delivered;
  };
  const Mode& mode_;  // the backend's
  cudaStream_t compute_;
  std::size_t bytes_per_slot_, step_;
  char* twins_;
  PinnedMemory host_;
  Stream copies_;
  std::vector<Slot> slots_;
  SentSlots sent_;
};

}  // namespace

std::unique_ptr<Feed> CudaBackend::open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) {
  return std::make_unique<CudaFeed>(mode_, lanes_[0].stream, slots, bytes_per_slot, device_memory);
}

}  // namespace assay::cuda
