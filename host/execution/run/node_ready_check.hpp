// Looks whether this node can run a shard: what differs from node to node, and would otherwise spoil or end each case.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "run/load_experiment.hpp"
#include "shard/node_ready.hpp"
#include "shard/shard_plan.hpp"
#include "worker/answer.hpp"

namespace assay::host::run {

struct NodeReadyQuestion {
  std::filesystem::path folder;  // of the shard
  shard::ShardPlan plan;
  std::string node;
  // The value of a variable, or null: std::getenv, or a test's.
  std::function<const char*(const char* name)> environment;
  std::function<worker::FoundDevice(const std::string& wanted)> find_device;
};

// The environment that the site file promises, the device of the shard's cases, memory and disk. `loaded`: the
// experiment and its plugin as they are read here.
shard::NodeReady check_node_ready(const NodeReadyQuestion& question, const LoadResult& loaded);

// The sentence about a device that is no GPU where the site promises one; "" for a device as it should be.
std::string problem_of_device(const shard::SitePromise& promised, const std::string& wanted,
                              const worker::FoundDevice& found);

}  // namespace assay::host::run
