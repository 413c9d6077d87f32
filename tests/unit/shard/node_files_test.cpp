#include <gtest/gtest.h>

#include "shard/node_health.hpp"
#include "shard/node_ready.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::shard {
namespace {

// In their order.
const std::vector<std::string>& odd_nodes() {
  static const std::vector<std::string> nodes{"fe80::1%eth0",        "n1",         "n1.cluster", std::string(251, 'n'),
                                              std::string(252, 'n'), "u@[::1]:22", "u@n1"};
  return nodes;
}

TEST(NodeFiles, WhatANodeFoundIsKnownByItsWholeName) {
  const test::TemporaryFolder folder;
  const JobStart start{"70", 1};
  for (const std::string& node : odd_nodes()) {
    NodeReady ready;
    ready.node = node, ready.at_s = static_cast<double>(node.size());
    write_node_ready(folder.path(), start, ready);
  }
  std::vector<std::string> found;
  for (const NodeReady& ready : read_nodes_ready(folder.path(), start)) {
    found.push_back(ready.node);
    EXPECT_EQ(ready.at_s, static_cast<double>(ready.node.size()));
  }
  EXPECT_EQ(found, odd_nodes());
}

TEST(NodeFiles, ANodeThatFailsIsKnownByItsWholeName) {
  const test::TemporaryFolder folder;
  for (const std::string& node : odd_nodes()) {
    EXPECT_FALSE(is_unhealthy(folder.path(), node));
    NodeHealth health;
    health.node = node, health.job = "70", health.problems = {"slow"};
    write_node_health(folder.path(), health);
    EXPECT_TRUE(is_unhealthy(folder.path(), node)) << node;
  }
  std::vector<std::string> found;
  for (const UnhealthyNode& each : unhealthy_nodes(folder.path())) found.push_back(each.node);
  EXPECT_EQ(found, odd_nodes());
}

}  // namespace
}  // namespace assay::host::shard
