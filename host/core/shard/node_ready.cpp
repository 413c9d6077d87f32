#include "shard/node_ready.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/files.hpp"
#include "common/host_file_name.hpp"

namespace assay::host::shard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view unready_word = "unready-";

fs::path folder_of(const fs::path& shard_folder, const JobStart& start) {
  return shard_folder / fmt::format("ready-{}-{}", start.job.empty() ? "hand" : start.job, start.restart);
}

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

std::optional<double> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<NodeReady> ready_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  const Json json = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  NodeReady ready;
  const auto node = json.find("node");
  ready.node = node != json.end() && node->is_string() ? node->get<std::string>() : file.stem().string();
  if (const auto problems = json.find("problems"); problems != json.end() && problems->is_array())
    for (const Json& problem : *problems)
      if (problem.is_string()) ready.problems.push_back(problem.get<std::string>());
  if (const auto device = json.find("device"); device != json.end() && device->is_string())
    ready.device = device->get<std::string>();
  ready.memory_available_mib = number_in(json, "memory_available_mib");
  ready.results_free_mib = number_in(json, "results_free_mib");
  ready.temporary_free_mib = number_in(json, "temporary_free_mib");
  ready.at_s = number_in(json, "at_s").value_or(0);
  return ready;
}

// "unready-70-1": job 70, its second start.
std::optional<JobStart> start_in(const std::string& name) {
  if (!name.starts_with(unready_word)) return std::nullopt;
  const std::string rest = name.substr(unready_word.size());
  const std::size_t dash = rest.rfind('-');
  if (dash == std::string::npos || dash == 0 || dash + 1 == rest.size()) return std::nullopt;
  if (rest.find_first_not_of("0123456789", dash + 1) != std::string::npos) return std::nullopt;
  return JobStart{rest.substr(0, dash), std::strtoll(rest.c_str() + dash + 1, nullptr, 10)};
}

double seconds_of(const fs::file_time_type& time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration<double>(system.time_since_epoch()).count();
}

}  // namespace

std::string json_text(const NodeReady& ready) {
  Json json{{"node", ready.node}, {"ready", ready.is_ready()}};
  if (!ready.problems.empty()) json["problems"] = ready.problems;
  if (!ready.device.empty()) json["device"] = ready.device;
  put(json, "memory_available_mib", ready.memory_available_mib);
  put(json, "results_free_mib", ready.results_free_mib);
  put(json, "temporary_free_mib", ready.temporary_free_mib);
  json["at_s"] = ready.at_s;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_node_ready(const fs::path& shard_folder, const JobStart& start, const NodeReady& ready) {
  const fs::path folder = folder_of(shard_folder, start);
  create_folders(folder);
  write_file_atomically(folder / (file_name_of_host(ready.node) + ".json"), json_text(ready) + "\n");
}

std::vector<NodeReady> read_nodes_ready(const fs::path& shard_folder, const JobStart& start) {
  std::vector<NodeReady> nodes;
  std::error_code error;
  for (fs::directory_iterator it(folder_of(shard_folder, start), error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json")
      if (auto ready = ready_in(it->path())) nodes.push_back(std::move(*ready));
  std::sort(nodes.begin(), nodes.end(), [](const NodeReady& a, const NodeReady& b) { return a.node < b.node; });
  return nodes;
}

std::vector<UnreadyStart> unready_starts(const fs::path& shard_folder) {
  std::vector<UnreadyStart> starts;
  std::error_code error;
  for (fs::directory_iterator it(shard_folder, error), end; !error && it != end; it.increment(error)) {
    const auto start = start_in(it->path().filename().string());
    std::error_code ignored;
    if (!start || !fs::is_regular_file(it->path(), ignored)) continue;
    std::string reason = read_file(it->path());
    reason = reason.substr(0, reason.find('\n'));
    starts.push_back({*start, reason, seconds_of(fs::last_write_time(it->path(), ignored))});
  }
  std::sort(starts.begin(), starts.end(), [](const UnreadyStart& a, const UnreadyStart& b) { return a.at_s < b.at_s; });
  return starts;
}

}  // namespace assay::host::shard
