// The wire that scripts/study_forecast measures on.
#include "slow_wire/schedule.hpp"

#include <gtest/gtest.h>

namespace assay::slow_wire {
namespace {

constexpr Wire wire{.latency_ns = 1000, .ns_per_byte = 2};

TEST(SlowWire, APacketTakesItsBytesAndTheLatency) {
  Schedule schedule(wire, 3);
  EXPECT_EQ(schedule.at_port_ns(0, 100, 5000), 5000 + 200 + 1000);
  EXPECT_EQ(schedule.delivered_ns(1, 100, 6200), 6200) << "its bits came while they left";
}

TEST(SlowWire, AHostsPacketsLeaveOneAfterTheOther) {
  Schedule schedule(wire, 3);
  EXPECT_EQ(schedule.at_port_ns(0, 100, 0), 1200);
  EXPECT_EQ(schedule.at_port_ns(0, 100, 50), 1400) << "whomever they are for";
  EXPECT_EQ(schedule.at_port_ns(1, 100, 50), 1250) << "another host has a cable of its own";
  EXPECT_EQ(schedule.at_port_ns(0, 100, 1000), 2200) << "the cable was free again";
}

TEST(SlowWire, PacketsOfTwoHostsWaitForTheReceiversCable) {
  Schedule schedule(wire, 3);
  EXPECT_EQ(schedule.delivered_ns(2, 100, 1200), 1200);
  EXPECT_EQ(schedule.delivered_ns(2, 100, 1250), 1400);
  EXPECT_EQ(schedule.delivered_ns(1, 100, 1250), 1250);
}

}  // namespace
}  // namespace assay::slow_wire
