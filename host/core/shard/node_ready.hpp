// Whether a node can run the cases of a shard, as one small step finds out there before the first of them.
//
//   <shard>/ready-<job>-<n>/<node>.json   what that start of the job found on one node
//   <shard>/unready-<job>-<n>             why that start began no case, in one line: left by the batch script
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "shard/shard_plan.hpp"

namespace assay::host::shard {

struct NodeReady {
  std::string node;
  std::vector<std::string> problems;  // each with its remedy; none: the node is ready
  std::string device;                 // that cases would take: "cuda NVIDIA H200"; "" where none was looked for
  std::optional<double> memory_available_mib, results_free_mib, temporary_free_mib;
  double at_s = 0;  // seconds since 1970

  bool is_ready() const { return problems.empty(); }
};

std::string json_text(const NodeReady& ready);
// Throws StorageError.
void write_node_ready(const std::filesystem::path& shard_folder, const JobStart& start, const NodeReady& ready);
// The answers of one start, by node. What cannot be read is left out.
std::vector<NodeReady> read_nodes_ready(const std::filesystem::path& shard_folder, const JobStart& start);

struct UnreadyStart {
  JobStart start;
  std::string reason;
  double at_s = 0;
};
// The starts that have begun no case, the first one first.
std::vector<UnreadyStart> unready_starts(const std::filesystem::path& shard_folder);

}  // namespace assay::host::shard
