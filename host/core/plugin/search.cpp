#include "plugin/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "common/suggest.hpp"
#include "plugin/table_reader.hpp"

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

constexpr const char* device_prefix = "libassay_device_";

// <prefix>/bin/assay -> <prefix>; the build tree has the same layout.
fs::path installation_prefix() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path();
}

void add_list(std::vector<fs::path>& out, const char* colon_separated) {
  std::string rest = colon_separated ? colon_separated : "";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    if (const std::string part = rest.substr(0, colon); !part.empty()) out.emplace_back(part);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
}

std::vector<fs::path> shared_objects(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->path().extension() == ".so") files.push_back(i->path());
  std::sort(files.begin(), files.end());
  return files;
}

FoundWorkload taken(const fs::path& given, const std::string& id) {
  std::error_code error;
  const fs::path file = fs::absolute(given, error).lexically_normal();
  if (!fs::is_regular_file(file, error))
    throw PluginError(fmt::format("{}: no such plugin file", file.string()), Refusal::file);
  FoundWorkload found;
  found.file = file;
  found.copies.push_back(LibraryCopy::take(file));
  for (const fs::path& library : libraries_beside(file)) found.copies.push_back(LibraryCopy::take(library));
  found.tables = read_tables(found.copies);
  found.schema = found.tables.workload(file, id);
  return found;
}

}  // namespace

std::vector<fs::path> plugin_folders(const std::vector<std::string>& from_command_line) {
  std::vector<fs::path> folders;
  for (const std::string& list : from_command_line) add_list(folders, list.c_str());
  add_list(folders, std::getenv("ASSAY_PLUGIN_PATH"));
  folders.push_back(installation_prefix() / "lib/assay/plugins");
  return folders;
}

std::vector<fs::path> device_folders() {
  std::vector<fs::path> folders;
  add_list(folders, std::getenv("ASSAY_DEVICE_PATH"));
  folders.push_back(installation_prefix() / "lib/assay/devices");
  return folders;
}

fs::path comm_folder() {
  if (const char* given = std::getenv("ASSAY_COMM_PATH"); given && *given) return given;
  return installation_prefix() / "lib/assay/comm";
}

FoundWorkload find_workload(const std::string& name, const std::vector<fs::path>& folders, const fs::path& base) {
  const std::size_t colon = name.rfind(':');
  const std::string stem = name.substr(0, colon);
  const std::string id = colon == std::string::npos ? "" : name.substr(colon + 1);
  const auto take = [&](const fs::path& file) { return taken(file, id); };
  if (stem.find('/') != std::string::npos) return take(fs::path(stem).is_absolute() ? fs::path(stem) : base / stem);

  for (const fs::path& folder : folders)
    if (std::error_code error; fs::is_regular_file(folder / (stem + ".so"), error))
      return take(folder / (stem + ".so"));
  // No file has the name. It may be the id of a workload in one of another name, or mistyped: the tables of all of them
  // say which, read by other processes or remembered.
  std::vector<std::string> known;
  std::vector<std::string> problems;
  for (const fs::path& folder : folders)
    for (const fs::path& file : shared_objects(folder)) {
      try {
        for (const std::string& workload : read_tables(file).workload_ids()) {
          if (workload == stem && id.empty()) return taken(file, workload);
          known.push_back(workload);
        }
      } catch (const PluginError& e) {
        problems.emplace_back(e.what());
      }
    }
  std::vector<std::string> places;
  for (const fs::path& folder : folders) places.push_back(folder.string());
  const auto near = nearest(stem, known);
  throw PluginError(fmt::format(
      "no plugin '{}'; looked in {}; known workloads: {}{}; give --plugin-path, or a path such as \"./{}.so\"{}", name,
      fmt::join(places, ", "), known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
      problems.empty() ? "" : "; unusable: " + fmt::format("{}", fmt::join(problems, "; ")), stem,
      near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

std::vector<ListedPlugin> list_plugins(const std::vector<fs::path>& folders) {
  std::vector<ListedPlugin> plugins;
  for (const fs::path& folder : folders)
    for (const fs::path& file : shared_objects(folder)) {
      try {
        plugins.push_back({file, read_tables(file), ""});
      } catch (const PluginError& e) {
        plugins.push_back({file, std::nullopt, e.what()});
      }
    }
  return plugins;
}

fs::path device_file(const std::string& kind) {
  std::vector<std::string> places;
  for (const fs::path& folder : device_folders()) {
    const fs::path file = folder / (device_prefix + kind + ".so");
    if (std::error_code error; fs::is_regular_file(file, error)) return file;
    places.push_back(folder.string());
  }
  throw PluginError(
      fmt::format("no backend for device '{}': {}{}.so is in none of: {}; this installation was built without "
                  "it",
                  kind, device_prefix, kind, fmt::join(places, ", ")));
}

std::shared_ptr<const DeviceLibrary> find_device(const std::string& kind) {
  return DeviceLibrary::open(device_file(kind));
}

std::vector<std::string> installed_device_kinds() {
  std::vector<std::string> kinds;
  const std::string prefix = device_prefix;
  for (const fs::path& folder : device_folders())
    for (const fs::path& file : shared_objects(folder)) {
      const std::string stem = file.stem().string();
      if (stem.rfind(prefix, 0) != 0) continue;
      const std::string kind = stem.substr(prefix.size());
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  return kinds;
}

}  // namespace assay::host::plugin
