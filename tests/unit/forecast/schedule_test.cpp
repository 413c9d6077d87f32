// The wire that scripts/study_forecast measures on.
#include "slow_wire/schedule.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::slow_wire {
namespace {

constexpr Wire wire{.latency_ns = 1000, .ns_per_byte = 2};

// "receiver@nanoseconds" of all packets, in the order in which they arrive.
std::vector<std::string> arrivals(Schedule& schedule) {
  std::vector<std::string> all;
  schedule.advance(1'000'000, [&](std::size_t to, const Packet& packet, std::int64_t at_ns) {
    EXPECT_FALSE(packet.empty());
    all.push_back(std::to_string(to) + "@" + std::to_string(at_ns));
  });
  EXPECT_EQ(schedule.next_ns(), Schedule::never_ns);
  return all;
}
using Arrivals = std::vector<std::string>;

TEST(SlowWire, APacketTakesItsBytesAndTheLatency) {
  Schedule schedule(wire, 3);
  schedule.send(0, 1, Packet(100), 5000);
  EXPECT_EQ(schedule.next_ns(), 5200) << "it has left";
  schedule.advance(6199, [](std::size_t, const Packet&, std::int64_t) { ADD_FAILURE() << "too early"; });
  EXPECT_EQ(arrivals(schedule), Arrivals{"1@6200"});
}

TEST(SlowWire, AHostsPacketsLeaveOneAfterTheOther) {
  Schedule schedule(wire, 3);
  schedule.send(0, 1, Packet(100), 0);
  schedule.send(0, 1, Packet(50), 50);
  schedule.send(1, 2, Packet(100), 50);  // on its own cable
  schedule.send(0, 1, Packet(100), 1000);
  EXPECT_EQ(arrivals(schedule), (Arrivals{"1@1200", "2@1250", "1@1300", "1@1500"}));
}

TEST(SlowWire, ReceiversTakeTurns) {
  Schedule schedule(wire, 3);
  for (int i = 0; i < 3; ++i) schedule.send(0, 1, Packet(100), 0);
  schedule.send(0, 2, Packet(100), 10);
  EXPECT_EQ(arrivals(schedule), (Arrivals{"1@1200", "1@1400", "2@1600", "1@1800"}));
}

TEST(SlowWire, PacketsOfTwoHostsWaitForTheReceiversCable) {
  Schedule schedule(wire, 3);
  schedule.send(0, 2, Packet(100), 0);
  schedule.send(1, 2, Packet(100), 50);
  schedule.send(1, 0, Packet(100), 50);
  EXPECT_EQ(arrivals(schedule), (Arrivals{"2@1200", "2@1400", "0@1450"}));
}

}  // namespace
}  // namespace assay::slow_wire
