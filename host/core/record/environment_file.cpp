#include "record/environment_file.hpp"

#include "common/foreign_json.hpp"
#include "record/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kOfInvocation{"command", "job.nodes", "job.partition"};
constexpr std::array<std::string_view, 13> kOfMoment{"captured",
                                                     "load_average",
                                                     "memory.available_mib",
                                                     "collected_from",
                                                     "node_ready",
                                                     "job.scheduler",
                                                     "job.id",
                                                     "job.array_id",
                                                     "job.array_task",
                                                     "job.restarts",
                                                     "variables.SLURM_JOB_ID",
                                                     "variables.SLURM_STEP_ID",
                                                     "variables.NCCL_COMM_ID"};

bool is_in(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Moves what does not last out of `json`, with the objects around it.
Json take_passing(Json& json, const std::string& prefix) {
  Json passing = Json::object(), lasting = Json::object();
  for (auto& [name, value] : json.items()) {
    if (value.is_object()) {
      if (Json below = take_passing(value, prefix + name + "."); !below.empty()) passing[name] = std::move(below);
      // An object with no fact left is no fact either: a job is there or not without the machine being another one.
      if (!value.empty()) lasting[name] = std::move(value);
    } else if (life_of_fact(prefix + name) == FactLife::lasting) {
      lasting[name] = std::move(value);
    } else {
      passing[name] = std::move(value);
    }
  }
  json = std::move(lasting);
  return passing;
}

std::string id_of(const Json& lasting) {
  // By name, so that a capture in another order is no other environment.
  const std::string text = nlohmann::json::parse(json_text(lasting)).dump();
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

}  // namespace

FactLife life_of_fact(std::string_view name) {
  if (is_in(kOfInvocation, name)) return FactLife::of_invocation;
  return is_in(kOfMoment, name) ? FactLife::of_moment : FactLife::lasting;
}

std::optional<EnvironmentFile> environment_file(const std::string& captured) {
  Json json = json_or_discarded(captured);
  if (!json.is_object()) return std::nullopt;
  Json invocation = take_passing(json, "");
  EnvironmentFile file{id_of(json), ""};
  json["invocations"] = Json::array({std::move(invocation)});
  file.text = json_text(json, 2);
  return file;
}

std::string with_invocations_of(const std::string& text, const std::string& other) {
  Json json = json_or_discarded(text), more = json_or_discarded(other);
  if (!json.is_object()) return other;
  if (!more.is_object()) return text;
  Json& all = json["invocations"];
  for (Json& each : more["invocations"])
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(std::move(each));
  return json_text(json, 2);
}

}  // namespace assay::host::record
