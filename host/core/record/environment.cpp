#include "record/environment.hpp"

#include "common/foreign_json.hpp"
#include "record/json.hpp"

#include <nlohmann/json.hpp>

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

void add_facts(Named<std::string>& facts, const Json& json, const std::string& prefix) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_object())
      add_facts(facts, value, prefix + name + ".");
    else if (!value.is_null())
      facts.emplace_back(prefix + name, value.is_string() ? value.get<std::string>() : json_text(value));
  }
}

}  // namespace

std::optional<Environment> Environment::parse(std::string text) {
  Json json = json_or_discarded(text);
  if (!json.is_object()) return std::nullopt;
  Environment environment;
  if (const auto invocations = json.find("invocations"); invocations != json.end() && invocations->is_array()) {
    for (const Json& each : *invocations)
      if (each.is_object()) add_facts(environment.invocations_.emplace_back(), each, "");
    json.erase(invocations);
  }
  add_facts(environment.facts_, json, "");
  environment.json_ = std::move(text);
  return environment;
}

std::string Environment::fact_or(std::string_view name, const std::string& otherwise) const {
  const std::string* fact = find(facts_, name);
  return fact ? *fact : otherwise;
}

}  // namespace assay::host::record
