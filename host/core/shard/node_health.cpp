#include "shard/node_health.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/files.hpp"
#include "common/host_file_name.hpp"

namespace assay::host::shard {

namespace fs = std::filesystem;

namespace {

// The names of files of long names do not end with the node's: the file beside has the whole.
std::string node_of_file(const fs::path& batch_folder, const std::string& name) {
  if (auto node = host_of_file_name(name)) return *node;
  const fs::path file = batch_folder / "nodes" / (name + ".json");
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return name;
  const auto json = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  const auto node = json.is_object() ? json.find("node") : json.end();
  return node != json.end() && node->is_string() ? node->get<std::string>() : name;
}

}  // namespace

fs::path batch_of_shard(const fs::path& shard_folder) {
  return fs::absolute(shard_folder / "." / "").lexically_normal().parent_path().parent_path().parent_path();
}

void write_node_health(const fs::path& batch_folder, const NodeHealth& health) {
  const nlohmann::ordered_json json{{"node", health.node},       {"healthy", health.is_healthy()},
                                    {"job", health.job},         {"problems", health.problems},
                                    {"figures", health.figures}, {"at_s", health.at_s}};
  create_folders(batch_folder / "nodes");
  if (!health.is_healthy()) {
    create_folders(batch_folder / "unhealthy");
    write_file_atomically(batch_folder / "unhealthy" / file_name_of_host(health.node),
                          fmt::format("{}\n", fmt::join(health.problems, "; ")));
  }
  write_file_atomically(batch_folder / "nodes" / (file_name_of_host(health.node) + ".json"),
                        json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::optional<NodeHealth> read_node_health(const fs::path& batch_folder, const std::string& node) {
  const fs::path file = batch_folder / "nodes" / (file_name_of_host(node) + ".json");
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  try {
    const auto json = nlohmann::json::parse(read_file(file));
    NodeHealth health;
    json.at("node").get_to(health.node);
    json.at("job").get_to(health.job);
    json.at("problems").get_to(health.problems);
    json.at("figures").get_to(health.figures);
    json.at("at_s").get_to(health.at_s);
    // Whoever has removed that file wants it looked at again. It was written before this one.
    if (!health.is_healthy() && !fs::exists(batch_folder / "unhealthy" / file_name_of_host(node), ignored))
      return std::nullopt;
    return health;
  } catch (const nlohmann::json::exception&) {  // half written: the node is looked at again
    return std::nullopt;
  }
}

bool is_unhealthy(const fs::path& batch_folder, const std::string& node) {
  const auto health = read_node_health(batch_folder, node);
  return health && !health->is_healthy();
}

std::vector<UnhealthyNode> unhealthy_nodes(const fs::path& batch_folder) {
  std::vector<UnhealthyNode> nodes;
  std::error_code error;
  for (fs::directory_iterator it(batch_folder / "unhealthy", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.')) continue;  // being written
    std::string reason = read_file(it->path());
    while (!reason.empty() && reason.back() == '\n') reason.pop_back();
    nodes.push_back({node_of_file(batch_folder, name), std::move(reason)});
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  return nodes;
}

}  // namespace assay::host::shard
