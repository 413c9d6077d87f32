// Feeds: the device's memory is the host's, so filled data is there already. The twins in device memory are the host
// buffers themselves, and a feed holds no extra memory.
#include <cstring>

#include "cpu_backend.hpp"

namespace assay::cpu {
namespace {

class CpuFeed final : public Feed {
 public:
  CpuFeed(const CpuBackend& backend, std::size_t slots, std::size_t bytes_per_slot, void* memory)
      : backend_(backend),
        slots_(slots),
        bytes_per_slot_(bytes_per_slot),
        step_(feed_slot_step(slots, bytes_per_slot, memory)),
        memory_(static_cast<char*>(memory)),
        sent_(slots) {}

  void* host_buffer(std::size_t slot) const override {
    require_feed_slot("host_buffer", slot, slots_);
    return memory_ + slot * step_;
  }
  void send(std::size_t slot) override {
    require_feed_slot("send", slot, slots_);
    sent_.send(slot);
  }
  void deliver(std::size_t slot, const Tensor& to) override {
    require_feed_slot("deliver", slot, slots_);
    require_delivery(to, bytes_per_slot_);
    if (backend_.preparing()) return;
    sent_.deliver(slot);
    std::memcpy(to.data, memory_ + slot * step_, to.bytes());
  }
  void reclaim(std::size_t slot) override { require_feed_slot("reclaim", slot, slots_); }

 private:
  const CpuBackend& backend_;
  std::size_t slots_, bytes_per_slot_, step_;
  char* memory_;
  SentSlots sent_;
};

}  // namespace

std::unique_ptr<Feed> CpuBackend::open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) {
  return std::make_unique<CpuFeed>(*this, slots, bytes_per_slot, device_memory);
}

}  // namespace assay::cpu
