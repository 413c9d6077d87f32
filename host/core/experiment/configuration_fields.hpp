// The fields of an object in a model's configuration: each is known, or named as unknown.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/suggest.hpp"

namespace assay::host::experiment {

// The fields of one object. What is asked for is known; the rest is named at the end.
class ConfigurationFields {
 public:
  using Json = nlohmann::ordered_json;

  ConfigurationFields(const Json& object, std::string prefix, std::vector<std::string>& problems)
      : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

  // Null is what a file says where it has no value.
  bool has(const char* name) {
    known_.insert(name);
    const auto found = object_.find(name);
    return found != object_.end() && !found->is_null();
  }
  // Whether the file says something of it, be it null: where leaving it out means another model than null does.
  bool requires_mention(const char* name, const std::string& why) {
    known_.insert(name);
    if (!object_.contains(name)) missing(name, why);
    return object_.contains(name);
  }
  const Json* at(const char* name) { return has(name) ? &*object_.find(name) : nullptr; }

  void problem(const char* name, const std::string& expected) {
    problems_.push_back(fmt::format("\"{}{}\" is {}; expected {}", prefix_, name, shown(name), expected));
  }
  void missing(const char* name, const std::string& why = "") {
    problems_.push_back(fmt::format("\"{}{}\" is missing{}", prefix_, name, why));
  }

  std::optional<std::int64_t> count(const char* name, bool required = true, std::int64_t least = 1) {
    const Json* const found = at(name);
    if (!found) {
      if (required) missing(name);
      return std::nullopt;
    }
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (found->is_number_integer() && found->get<double>() >= static_cast<double>(least) &&
        found->get<double>() <= static_cast<double>(most))
      return found->get<std::int64_t>();
    problem(name, fmt::format("a whole number of at least {}", least));
    return std::nullopt;
  }
  std::optional<double> number(const char* name, bool required = true) {
    const Json* const found = at(name);
    if (!found) {
      if (required) missing(name);
      return std::nullopt;
    }
    if (found->is_number() && std::isfinite(found->get<double>())) return found->get<double>();
    problem(name, "a number");
    return std::nullopt;
  }
  std::optional<bool> boolean(const char* name, bool required = true) {
    const Json* const found = at(name);
    if (!found) {
      if (required) missing(name);
      return std::nullopt;
    }
    if (found->is_boolean()) return found->get<bool>();
    problem(name, "true or false");
    return std::nullopt;
  }
  std::optional<std::string> text(const char* name, bool required = true) {
    const Json* const found = at(name);
    if (!found) {
      if (required) missing(name);
      return std::nullopt;
    }
    if (found->is_string()) return found->get<std::string>();
    problem(name, "a text");
    return std::nullopt;
  }
  // A field that is left out, or has the one value that is served.
  template <class T>
  void only(const char* name, const T& served, const char* why) {
    const Json* const found = at(name);
    if (found && *found != Json(served)) problem(name, fmt::format("{}: {}", Json(served).dump(), why));
  }

  void name_unknown(const std::vector<std::string>& also_known) const {
    for (const auto& [name, value] : object_.items()) {
      if (known_.contains(name)) continue;
      problems_.push_back(fmt::format("unknown field \"{}{}\"{}", prefix_, name, did_you_mean(name, also_known)));
    }
  }
  const std::set<std::string>& known() const { return known_; }
  void know(const char* name) { known_.insert(name); }

 private:
  std::string shown(const char* name) const {
    std::string text = object_.at(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
  }

  const Json& object_;
  std::string prefix_;
  std::vector<std::string>& problems_;
  std::set<std::string> known_;
};

}  // namespace assay::host::experiment
