#include "gpu_sharing.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace assay::comm::nccl {
namespace {

Place place(const char* host, const char* boot, const char* bus, std::uint8_t gpu) {
  Place p;
  std::strcpy(p.host, host);
  std::strcpy(p.boot, boot);
  std::strcpy(p.bus, bus);
  p.uuid[0] = gpu;
  return p;
}
std::map<std::string, std::string> environment_of(const Sharing& sharing) {
  return {sharing.environment.begin(), sharing.environment.end()};
}

TEST(GpuSharing, RanksWithGpusOfTheirOwnAreLeftAlone) {
  const Place places[] = {place("a", "b1", "01", 1), place("a", "b1", "02", 2), place("c", "b2", "01", 3)};
  const Sharing sharing = decide_sharing(places, 1);
  EXPECT_EQ(sharing.most_on_one_gpu, 1);
  EXPECT_TRUE(sharing.environment.empty());
  EXPECT_EQ(sharing.note, "");
}

TEST(GpuSharing, TwoRanksOnOneGpuPretendToBeTwoMachines) {
  const Place places[] = {place("a", "b1", "01", 1), place("a", "b1", "01", 1)};
  const std::map<std::string, std::string> expected{{"NCCL_HOSTID", "a-1"},
                                                    {"NCCL_NET", "Socket"},
                                                    {"NCCL_IB_DISABLE", "1"},
                                                    {"NCCL_MNNVL_ENABLE", "0"},
                                                    {"NCCL_SOCKET_IFNAME", "lo"}};
  const Sharing sharing = decide_sharing(places, 1);
  EXPECT_EQ(environment_of(sharing), expected);
  EXPECT_EQ(sharing.note, "2 ranks share a GPU: through sockets, for correctness only");
  EXPECT_EQ(environment_of(decide_sharing(places, 0))["NCCL_HOSTID"], "a-0");
}

TEST(GpuSharing, ARankBesideThemDoesAsTheyDo) {
  const Place places[] = {place("a", "b1", "01", 1), place("a", "b1", "02", 2), place("a", "b1", "01", 1),
                          place("a", "b1", "01", 1)};
  const Sharing sharing = decide_sharing(places, 1);
  EXPECT_EQ(sharing.most_on_one_gpu, 3);
  EXPECT_EQ(environment_of(sharing)["NCCL_HOSTID"], "a-1");
  EXPECT_EQ(environment_of(sharing)["NCCL_NET"], "Socket");
}

TEST(GpuSharing, ContainersWithNamesOfTheirOwnDoNotSpeakThroughTheLoopback) {
  const Place places[] = {place("n1", "b1", "01", 1), place("n2", "b1", "01", 1)};
  const Sharing sharing = decide_sharing(places, 0);
  EXPECT_EQ(sharing.most_on_one_gpu, 2);
  EXPECT_EQ(environment_of(sharing).count("NCCL_SOCKET_IFNAME"), 0U);
}

TEST(GpuSharing, TwoMachinesOfOneNameAreTwo) {
  const Place places[] = {place("localhost", "b1", "01", 1), place("localhost", "b2", "01", 2)};
  EXPECT_EQ(decide_sharing(places, 0).most_on_one_gpu, 1);
}

// Slices of one GPU have their own ids and one bus id, and that is what NCCL refuses.
TEST(GpuSharing, SlicesOfOneGpuShareIt) {
  const Place places[] = {place("a", "b1", "01", 1), place("a", "b1", "01", 2)};
  EXPECT_EQ(decide_sharing(places, 0).most_on_one_gpu, 2);
}

}  // namespace
}  // namespace assay::comm::nccl
