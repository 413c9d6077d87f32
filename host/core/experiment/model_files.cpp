#include "experiment/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/files.hpp"

namespace assay::host::experiment {

namespace {

constexpr std::uintmax_t largest_file = 1 << 20;  // one of a model is a few KiB

const plugin::ParamSpec* find_param(const plugin::WorkloadSchema& schema, const std::string& param) {
  const auto found = std::find_if(schema.params.begin(), schema.params.end(),
                                  [&](const plugin::ParamSpec& candidate) { return candidate.name == param; });
  return found == schema.params.end() ? nullptr : &*found;
}

std::string path_of(const plugin::WorkloadSchema& schema, const Case& c) {
  const plugin::ParamSpec* const spec = find_param(schema, model_file_param);
  if (!spec || !spec->input_path) return "";
  const auto found = c.params.find(model_file_param);  // not there before a sweep of it gives it a value
  const auto* path = found == c.params.end() ? nullptr : std::get_if<std::string>(&found->second);
  return path ? *path : "";
}

// The choice that a file takes the place of; nullptr where the workload has none with this value.
const plugin::ParamSpec* find_size(const plugin::WorkloadSchema& schema) {
  for (const char* name : {"size", "model"})
    if (const plugin::ParamSpec* const size = find_param(schema, name);
        size && std::find(size->choices.begin(), size->choices.end(), model_file_param) != size->choices.end())
      return size;
  return nullptr;
}

// What a model without it has: no parameter is needed to say so.
bool is_absence(const Value& value) {
  return value == Value(false) || value == Value(std::int64_t{0}) || value == Value(std::string("none")) ||
         value == Value(std::string("silu"));
}

// "" where the workload's parameter may have the value.
std::string out_of_range(const plugin::ParamSpec& spec, const Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (!whole && !real) return "";
  const double number = whole ? static_cast<double>(*whole) : *real;
  if ((!spec.min || number >= *spec.min) && (!spec.max || number <= *spec.max)) return "";
  return fmt::format("{} = {} is outside the workload's range{}{}", spec.name, to_text(value),
                     spec.min ? fmt::format(", at least {}", *spec.min) : "",
                     spec.max ? fmt::format(", at most {}", *spec.max) : "");
}

}  // namespace

void ModelFiles::refuse(const std::string& path, const std::string& what) {
  std::string text = fmt::format("{} = \"{}\": {}", model_file_param, path, what);
  if (std::find(problems_.begin(), problems_.end(), text) == problems_.end()) problems_.push_back(std::move(text));
}

const ModelConfiguration& ModelFiles::read(const std::string& path) {
  const auto [at, is_new] = read_.try_emplace(path);
  if (!is_new) return at->second;
  std::error_code error;
  if (const std::uintmax_t size = std::filesystem::file_size(path, error); error || size > largest_file) {
    refuse(path,
           error ? error.message() : fmt::format("{} bytes; expected a config.json of at most {}", size, largest_file));
    return at->second;
  }
  at->second = read_model_configuration(read_regular_file(path));
  for (const std::string& problem : at->second.problems) refuse(path, problem);
  if (!at->second.problems.empty()) at->second.values.clear();
  return at->second;
}

void ModelFiles::apply(const plugin::WorkloadSchema& schema, Case& into) {
  const std::string path = path_of(schema, into);
  if (path.empty()) return;
  const plugin::ParamSpec* const size = find_size(schema);
  if (size && into.given_params.contains(size->name) &&
      into.params.at(size->name) != Value(std::string(model_file_param)))
    refuse(path, fmt::format("{0} says what the model is, too; expected one of the two, or {0} = \"{1}\" beside a file",
                             size->name, model_file_param));
  const std::map<std::string, Value>& values = read(path).values;
  const auto experts = values.find("experts");
  const bool is_dense = experts == values.end() || experts->second == Value(std::int64_t{0});
  if (!values.empty() && is_dense == (find_param(schema, "experts") != nullptr))
    return refuse(path, is_dense ? fmt::format("the model has no experts, and {} trains models that have", schema.id)
                                 : fmt::format("the model has {} experts, and {} has none; the workload moe has",
                                               to_text(experts->second), schema.id));
  for (const auto& [name, value] : values) {
    if (into.given_params.contains(name)) continue;
    const plugin::ParamSpec* const spec = find_param(schema, name);
    if (!spec) {
      if (!is_absence(value))
        refuse(path,
               fmt::format("the model has {} = {}, for which {} has no parameter", name, to_text(value), schema.id));
      continue;
    }
    if (const std::string why = out_of_range(*spec, value); !why.empty()) {
      refuse(path, why);
      continue;
    }
    into.params[name] = value;
  }
  // No preset is left to say anything.
  if (size) into.params[size->name] = std::string(model_file_param);
}

bool is_decided_by_file(const plugin::WorkloadSchema& schema, const Case& c, const std::string& param) {
  return !path_of(schema, c).empty() && is_of_model_configuration(param);
}

}  // namespace assay::host::experiment
