#include "experiment/output_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <vector>

namespace assay::host::experiment {
namespace {

// Leaves room for the case's number and for what a writer adds while it writes: file systems take 255 bytes.
constexpr std::size_t longest_component = 200;

// What the host keeps in a run folder, by the first part of a path.
constexpr std::array<std::string_view, 8> names_of_host{
    "cases.jsonl", "experiment.toml", "environment.json", "environments", "files", "logs", "batch", "latest"};
constexpr std::array<std::string_view, 6> beginnings_of_host{"table.",       "bench_",     "kernels_case-",
                                                             "memory_case-", "nsys_case-", "ncu_case-"};

bool is_of_host(const std::string& first) {
  return std::find(names_of_host.begin(), names_of_host.end(), first) != names_of_host.end() ||
         std::any_of(beginnings_of_host.begin(), beginnings_of_host.end(),
                     [&first](std::string_view begin) { return first.starts_with(begin); });
}

std::vector<std::string> components_of(const std::string& name) {
  std::vector<std::string> components;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    components.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return components;
}

}  // namespace

std::optional<std::string> problem_of_output(const std::string& name) {
  if (name.starts_with('/')) return "is an absolute path";
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }))
    return "has a control character";
  const std::vector<std::string> components = components_of(name);
  for (const std::string& component : components) {
    if (component.empty()) return "has a part without a name";
    if (component == "..") return "leaves its folder";
    if (component.front() == '.') return "has a part that begins with '.'";
    if (component.size() > longest_component)
      return fmt::format("has a part of {} bytes, above {}", component.size(), longest_component);
  }
  if (is_of_host(components.front()))
    return fmt::format("begins with {}, which is assay's own in a run folder", components.front());
  if (components.back().ends_with(".partial")) return "ends like a file that is half written";
  return std::nullopt;
}

std::optional<std::pair<std::string, std::string>> outputs_in_conflict(const Case& c,
                                                                       const plugin::WorkloadSchema& schema) {
  std::vector<std::pair<std::string, std::string>> outputs;  // parameter, file
  for (const plugin::ParamSpec& p : schema.params) {
    const auto found = p.output_path ? c.params.find(p.name) : c.params.end();
    const auto* file = found == c.params.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (!file || file->empty()) continue;
    for (const auto& [param, other] : outputs)
      if (other == *file || other.starts_with(*file + "/") || file->starts_with(other + "/"))
        return std::pair(p.name, param);
    outputs.emplace_back(p.name, *file);
  }
  return std::nullopt;
}

std::string own_output_name(const std::string& name, const std::string& stem) {
  const std::filesystem::path path(name);
  return (path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), stem, path.extension().string())).string();
}

}  // namespace assay::host::experiment
