#include <gtest/gtest.h>
#include <assay/comm/message.hpp>
#include <assay/plugin.hpp>

namespace assay::comm {
namespace {

TEST(Message, WholeBuffersKeepEveryElement) {
  for (const Collective c : {Collective::all_reduce, Collective::broadcast, Collective::send_receive}) {
    const Message m = plan_message(c, 1'000'003, 4, 3);
    EXPECT_EQ(m.larger, 250'000);
    EXPECT_EQ(m.bytes, 1'000'000);
    EXPECT_EQ(m.count, 250'000);
    EXPECT_EQ(m.part, 0);
  }
}

TEST(Message, PartsAreEqual) {
  for (const Collective c : {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
    const Message m = plan_message(c, 1 << 20, 2, 6);
    EXPECT_EQ(m.part, (1 << 19) / 6);
    EXPECT_EQ(m.count, m.part);
    EXPECT_EQ(m.larger, 6 * m.part);
    EXPECT_EQ(m.bytes, 2 * m.larger);
  }
}

TEST(Message, BeyondTwoGigabytes) {
  const Message m = plan_message(Collective::reduce_scatter, std::int64_t{5} << 30, 4, 4);
  EXPECT_EQ(m.bytes, std::int64_t{5} << 30);
  EXPECT_EQ(m.part, std::int64_t{5} << 26);
}

TEST(Message, NotOneElementIsRefused) {
  EXPECT_EQ(plan_message(Collective::all_reduce, 4, 4, 8).larger, 1);
  EXPECT_EQ(plan_message(Collective::all_gather, 32, 4, 8).part, 1);
  EXPECT_THROW(plan_message(Collective::all_reduce, 3, 4, 1), assay::Error);
  try {
    plan_message(Collective::all_gather, 31, 4, 8);
    FAIL() << "a part of 0 elements was accepted";
  } catch (const assay::Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("at least 32 bytes"), std::string::npos) << e.what();
  }
}

TEST(Bandwidth, AlgorithmBandwidthIsInBillions) {
  // Report 003 (results/published) has 0.845 for 1 MiB in 1.241 ms.
  EXPECT_NEAR(algorithm_bandwidth_gbs(1 << 20, 1.241), 0.845, 5e-4);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth_gbs(2'000'000'000, 1000), 2);
}

TEST(Bandwidth, BusFactors) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::send_receive, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 1), 0);
}

}  // namespace
}  // namespace assay::comm
