#include "plugin/new_plugin_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/suggest.hpp"
#include "common/usage_error.hpp"
#include "plugin/plugin_templates.hpp"

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

// CMake and ctest have targets of these names themselves.
constexpr const char* taken_names[] = {
    "all",     "clean",          "edit_cache", "help",          "install", "list_install_components",
    "package", "package_source", "preinstall", "rebuild_cache", "test"};

void check_name(const std::string& name) {
  const bool valid = !name.empty() && std::islower(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(),
                                 [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
  if (!valid)
    throw UsageError(
        fmt::format("'{}' cannot name a plugin; expected a lower-case letter, then lower-case letters, digits "
                    "or '_', such as 'my_plugin'",
                    name));
  if (std::find(std::begin(taken_names), std::end(taken_names), name) != std::end(taken_names))
    throw UsageError(
        fmt::format("'{0}' cannot name a plugin: CMake has a target of this name; expected another, such "
                    "as '{0}_plugin'",
                    name));
}

PluginTemplate chosen_template(const std::string& name) {
  const std::vector<PluginTemplate> all = plugin_templates();
  std::vector<std::string> names;
  for (const PluginTemplate& one : all) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  if (all.empty())
    throw StorageError(fmt::format(
        "there are no templates in {}; install assay whole (cmake --install), or run it from its build folder",
        template_folder().string()));
  throw UsageError(
      fmt::format("there is no template '{}'; expected {}{}", name, fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

int new_plugin(const NewPluginRequest& request) {
  const std::vector<std::string>& words = request.what;
  if (words.size() != 2 || words[0] != "plugin") throw UsageError("expected 'assay new plugin NAME'");
  const std::string& name = words[1];
  check_name(name);
  const PluginTemplate chosen = chosen_template(request.from);
  const std::string prefix = template_folder().parent_path().parent_path().parent_path().string();
  const std::vector<ProjectFile> files = project_files(chosen, name, prefix);
  const fs::path folder = request.output ? fs::path(*request.output) : fs::path(name);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    fmt::print(stderr, "assay: {} exists and is not empty; nothing was written; give another --output\n",
               folder.string());
    return exit_usage;
  }
  if (const int error_number = try_creating_folders(folder); error_number != 0)
    throw StorageError(fmt::format("cannot create {}: {}; give another --output", folder.string(),
                                   std::generic_category().message(error_number)));
  for (const ProjectFile& file : files) {
    if (file.name.has_parent_path()) create_folders(folder / file.name.parent_path());
    write_file_atomically(folder / file.name, file.text);
    fmt::print("{}\n", (folder / file.name).string());
  }
  fmt::print(
      "\nNext:\n"
      "  cd {0}\n  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=\"{2}\"\n"
      "  cmake --build build\n  assay run {1}.toml --plugin-path build\n",
      folder.string(), name, prefix);
  return exit_ok;
}

}  // namespace assay::host::plugin
