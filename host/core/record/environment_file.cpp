#include "record/environment_file.hpp"

#include "common/foreign_json.hpp"
#include "record/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

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

// Where the invocations begin in a file that assay wrote. No text within JSON holds a line's end.
constexpr std::string_view kListBegins = "\n  \"invocations\": [";

struct JoinedEnvironment::State {
  std::string first;  // as it was
  // What stands before its invocations; "" where they do not come last. Files of one id have all the same there, so
  // that the rest is all that is read of the others.
  std::string head;
  Json json;
  std::unordered_set<std::string> seen;  // the invocations, in one line each
  bool has_grown = false;

  void read_first(const std::string& text, Json parsed) {
    first = text, json = std::move(parsed);
    for (const Json& each : list_in(json)) seen.insert(json_text(each));
    const std::size_t at = text.find(kListBegins);
    // Only at the depth of the file's members is the rest, with the brace that the head has opened, an object.
    if (at != std::string::npos && rest_of(text, at).is_object()) head = text.substr(0, at + kListBegins.size());
  }

  static Json rest_of(std::string_view text, std::size_t at) {
    return json_or_discarded("{" + std::string(text.substr(at)));
  }

  Json read(const std::string& text) const {
    const bool is_alike = !head.empty() && text.starts_with(head);
    return is_alike ? rest_of(text, head.size() - kListBegins.size()) : json_or_discarded(text);
  }

  static Json list_in(const Json& file) {
    const auto found = file.find("invocations");
    return found != file.end() && found->is_array() ? *found : Json::array();
  }
};

JoinedEnvironment::JoinedEnvironment() : state_(std::make_unique<State>()) {}
JoinedEnvironment::~JoinedEnvironment() = default;
JoinedEnvironment::JoinedEnvironment(JoinedEnvironment&&) noexcept = default;

bool JoinedEnvironment::add(const std::string& text) {
  Json more = state_->read(text);
  if (!more.is_object()) return false;
  if (state_->json.is_null()) {
    state_->read_first(text, std::move(more));
    return true;
  }
  Json& all = state_->json["invocations"];
  if (!all.is_array()) all = Json::array();
  for (Json& each : State::list_in(more))
    if (state_->seen.insert(json_text(each)).second) {
      all.push_back(std::move(each));
      state_->has_grown = true;
    }
  return true;
}

bool JoinedEnvironment::has_grown() const { return state_->has_grown; }

std::string JoinedEnvironment::text() const {
  std::string text = state_->has_grown ? json_text(state_->json, 2) : state_->first;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace assay::host::record
