// A feed between two places in host memory that holds its user to the rules of compute::Feed. A host buffer that is
// given back is overwritten, so that whoever still counts on it is found out.
#pragma once
#include <gtest/gtest.h>
#include <assay/compute/backend.hpp>

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace assay::data {

class CheckedFeed : public compute::Feed {
 public:
  CheckedFeed(std::size_t slots, std::size_t bytes) : slots_(slots) {
    for (Slot& slot : slots_) slot.host.resize(bytes);
  }
  void* host_buffer(std::size_t slot) const override { return const_cast<std::byte*>(slots_.at(slot).host.data()); }
  void send(std::size_t slot) override {
    expect_thread();
    EXPECT_FALSE(slots_.at(slot).sent) << "slot " << slot << " sent twice";
    slots_[slot].sent = true;
  }
  void deliver(std::size_t slot, const compute::Tensor& to) override {
    expect_thread();
    EXPECT_TRUE(slots_.at(slot).sent) << "slot " << slot << " delivered before it was sent";
    std::memcpy(to.data, slots_[slot].host.data(), to.bytes());
    ++delivered;
  }
  void reclaim(std::size_t slot) override {
    expect_thread();
    EXPECT_TRUE(slots_.at(slot).sent) << "slot " << slot << " reclaimed before it was sent";
    slots_[slot].sent = false;
    std::memset(slots_[slot].host.data(), 0xff, slots_[slot].host.size());
    ++reclaimed;
  }
  std::size_t sent() const {
    std::size_t n = 0;
    for (const Slot& slot : slots_) n += slot.sent ? 1 : 0;
    return n;
  }
  std::size_t delivered = 0, reclaimed = 0;

 private:
  struct Slot {
    std::vector<std::byte> host;
    bool sent = false;
  };
  void expect_thread() const { EXPECT_EQ(std::this_thread::get_id(), thread_); }
  std::vector<Slot> slots_;
  std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace assay::data
