// When packets arrive that hosts send one another through a switch: each host has one cable with a bandwidth in each
// direction, and a packet is under way for a latency. What waits is kept in order and never lost.
//
// A host's cable carries its packets one after the other. A packet's bits come in at the receiver while they leave the
// sender, one latency later (the switch cuts through), unless those of another sender come in at that time: then it
// waits at the switch for the receiver's cable.
//
// Times are nanoseconds of any clock.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::slow_wire {

struct Wire {
  std::int64_t latency_ns = 0;
  double ns_per_byte = 0;
};

class Schedule {
 public:
  Schedule(const Wire& wire, std::size_t hosts) : wire_(wire), out_free_ns_(hosts), in_free_ns_(hosts) {}

  // When the packet that `host` hands over at `now_ns` has reached the switch's port to the receiver.
  std::int64_t at_port_ns(std::size_t host, std::size_t bytes, std::int64_t now_ns) {
    out_free_ns_[host] = std::max(now_ns, out_free_ns_[host]) + on_cable_ns(bytes);
    return out_free_ns_[host] + wire_.latency_ns;
  }
  // When `host` has a packet that is at the switch's port to it. To be called in the order of `at_port_ns`.
  std::int64_t delivered_ns(std::size_t host, std::size_t bytes, std::int64_t at_port_ns) {
    in_free_ns_[host] = std::max(at_port_ns, in_free_ns_[host] + on_cable_ns(bytes));
    return in_free_ns_[host];
  }

 private:
  std::int64_t on_cable_ns(std::size_t bytes) const {
    return static_cast<std::int64_t>(wire_.ns_per_byte * static_cast<double>(bytes));
  }

  Wire wire_;
  std::vector<std::int64_t> out_free_ns_, in_free_ns_;  // by host: when its cable has carried all so far
};

}  // namespace assay::slow_wire
