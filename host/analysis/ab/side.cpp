#include "ab/side.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::host::ab {
namespace {

std::vector<std::string> command_of(const SideSpec& side, const CommonPart& common) {
  std::vector<std::string> command{side.executable, "run", side.experiment.string()};
  const auto add = [&command](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) command.insert(command.end(), {option, value});
  };
  add("--plugin-path", side.plugin_folders);
  add("--plugin-path", common.plugin_folders);
  add("--set", common.settings);
  add("--set", side.settings);
  add("--filter", common.filters);
  return command;
}

}  // namespace

std::vector<std::string> check_command(const SideSpec& side, const CommonPart& common) {
  std::vector<std::string> command = command_of(side, common);
  // A case that a plan has no room for is no mistake: what it does is in its records.
  command.insert(command.end(), {"--set", "run.repeat=2", "--set", "run.allow=[\"oom\"]", "--dry-run"});
  return command;
}

std::vector<std::string> turn_command(const SideSpec& side, const CommonPart& common, std::int64_t repeat) {
  std::vector<std::string> command = command_of(side, common);
  command.insert(command.end(),
                 {"--set", fmt::format("run.repeat={}", repeat), "--output", side.folder.string() + "/", "--quiet"});
  if (repeat > 1) command.emplace_back("--resume");
  return command;
}

std::string description_of(const SideSpec& side, bool names_experiment) {
  std::vector<std::string> parts = side.settings;
  if (names_experiment) parts.insert(parts.begin(), side.experiment.string());
  for (const std::string& folder : side.plugin_folders) parts.push_back(fmt::format("plugins of {}", folder));
  for (const auto& [name, value] : side.environment) parts.push_back(fmt::format("{}={}", name, value));
  if (side.executable != this_program) parts.push_back(fmt::format("run by {}", side.executable));
  return parts.empty() ? "as the experiment has it" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace assay::host::ab
