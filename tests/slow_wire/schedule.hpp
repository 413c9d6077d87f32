// When packets arrive that hosts send one another through a switch: each host has one cable with a bandwidth in each
// direction, and a packet is under way for a latency. What waits is kept in order and never lost.
//
// What waits at a host takes turns among its receivers, packet by packet, as Linux does (fq_codel): a connection with
// much to send does not hold up the others. A packet's bits come in at the receiver while they leave the sender, one
// latency later (the switch cuts through), unless those of another sender come in at that time: then it waits at the
// switch for the receiver's cable.
//
// Times are nanoseconds of any clock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace assay::slow_wire {

struct Wire {
  std::int64_t latency_ns = 0;
  double ns_per_byte = 0;
};

using Packet = std::vector<char>;

class Schedule {
 public:
  static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

  Schedule(const Wire& wire, std::size_t hosts);

  // A host hands a packet over.
  void send(std::size_t from, std::size_t to, Packet packet, std::int64_t now_ns);
  // When something happens next; nothing may be sent at an earlier time once that has been taken.
  std::int64_t next_ns() const { return events_.empty() ? never_ns : events_.top().at_ns; }
  // All that has arrived until then, in order: calls arrived(to, packet, when).
  template <class Arrived>
  void advance(std::int64_t now_ns, Arrived&& arrived) {
    while (next_ns() <= now_ns) {
      Event event = take_next();
      if (event.what == What::arrived)
        arrived(event.host, event.packet, event.at_ns);
      else
        happen(std::move(event));
    }
  }

 private:
  enum class What { cable_free, at_port, arrived };
  struct Event {
    std::int64_t at_ns = 0;
    std::uint64_t number = 0;  // of two at one time the one that was made first comes first
    What what = What::cable_free;
    std::size_t host = 0;  // whose cable, or where the packet goes
    Packet packet;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::pair(a.at_ns, a.number) > std::pair(b.at_ns, b.number);
    }
  };
  struct Host {
    std::vector<std::deque<Packet>> waiting;  // by receiver
    std::deque<std::size_t> turns;            // receivers with something waiting
    bool is_sending = false;
    std::int64_t in_free_ns = 0;  // when the cable to it has carried all so far
  };

  std::int64_t on_cable_ns(const Packet& packet) const {
    return static_cast<std::int64_t>(wire_.ns_per_byte * static_cast<double>(packet.size()));
  }
  void push(std::int64_t at_ns, What what, std::size_t host, Packet packet = {});
  Event take_next();
  void happen(Event event);
  void send_next(std::size_t from, std::int64_t at_ns);

  Wire wire_;
  std::vector<Host> hosts_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t count_ = 0;
};

}  // namespace assay::slow_wire
