// How a node did in the site's health check, once for each batch. Kept in the folder of the batch, where every shard
// sees it:
//
//   <batch>/nodes/<node>.json    what was found there; the names of files are those of common/host_file_name.hpp
//   <batch>/unhealthy/<node>     only of one that failed: why, in one line. The names are what the batch script
//   excludes
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shard/shard_plan.hpp"

namespace assay::host::shard {

struct NodeHealth {
  std::string node, job;
  std::vector<std::string> problems;      // none: it is healthy
  std::map<std::string, double> figures;  // by case and column: "check=copy gbytes_per_s"
  double at_s = 0;                        // seconds since 1970

  bool is_healthy() const { return problems.empty(); }
};

// The folder of the batch that a shard belongs to.
std::filesystem::path batch_of_shard(const std::filesystem::path& shard_folder);
// Throws StorageError.
void write_node_health(const std::filesystem::path& batch_folder, const NodeHealth& health);
// Nothing when the node was not looked at yet, or failed and its file in unhealthy/ was removed since.
std::optional<NodeHealth> read_node_health(const std::filesystem::path& batch_folder, const std::string& node);

// Whether it was looked at and failed. One that was not looked at yet is not.
bool is_unhealthy(const std::filesystem::path& batch_folder, const std::string& node);

struct UnhealthyNode {
  std::string node, reason;
};
std::vector<UnhealthyNode> unhealthy_nodes(const std::filesystem::path& batch_folder);  // by name

}  // namespace assay::host::shard
