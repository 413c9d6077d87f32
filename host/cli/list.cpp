// assay list
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "plugin/search.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
using json = nlohmann::ordered_json;

json plugin_json(const plugin::ListedPlugin& plugin) {
  if (!plugin.library) return {{"file", plugin.file.string()}, {"problem", plugin.problem}};
  const assay_entry& entry = plugin.library->entry();
  json workloads = json::array();
  for (std::uint32_t i = 0; i < entry.workload_count; ++i) {
    const char* summary = entry.workloads[i]->summary;
    workloads.push_back({{"id", entry.workloads[i]->id}, {"summary", summary ? summary : ""}});
  }
  return {{"file", plugin.file.string()},
          {"id", entry.id},
          {"version", entry.version},
          {"build", entry.build},
          {"workloads", std::move(workloads)}};
}

// The CPU is opened: it costs milliseconds. A GPU's backend would load its vendor's libraries; that waits for a run.
json device_json(const std::string& kind) {
  json out = {{"kind", kind}};
  if (kind != "cpu") {
    out["note"] = "backend installed; opened when a case asks for it";
    return out;
  }
  try {
    const plugin::OpenDevice device(plugin::find_device(kind), 0);
    const assay_device_info info = device.info();
    out["name"] = info.name;
    out["libraries"] = info.libraries;
    out["memory_gib"] = static_cast<double>(info.memory_total_bytes) / (1024.0 * 1024.0 * 1024.0);
  } catch (const std::exception& e) {
    out["problem"] = e.what();
  }
  return out;
}

void print_table(const json& list) {
  fmt::print("Plugins\n");
  for (const json& plugin : list["plugins"]) {
    if (plugin.contains("problem")) {
      fmt::print("  unusable: {}\n", plugin["problem"].get<std::string>());
      continue;
    }
    for (const json& workload : plugin["workloads"])
      fmt::print("  {:<18} {}\n", workload["id"].get<std::string>(), workload["summary"].get<std::string>());
    fmt::print("  {:<18} {} {} ({}), {}\n", "", plugin["id"].get<std::string>(), plugin["version"].get<std::string>(),
               plugin["build"].get<std::string>(), plugin["file"].get<std::string>());
  }
  if (list["plugins"].empty()) fmt::print("  none; give --plugin-path or set ASSAY_PLUGIN_PATH\n");
  fmt::print("\nDevices\n");
  for (const json& device : list["devices"]) {
    const std::string kind = device["kind"];
    if (device.contains("problem"))
      fmt::print("  {:<6} unusable: {}\n", kind, device["problem"].get<std::string>());
    else if (device.contains("note"))
      fmt::print("  {:<6} {}\n", kind, device["note"].get<std::string>());
    else
      fmt::print("  {:<6} {}, {:.1f} GiB; {}\n", kind, device["name"].get<std::string>(),
                 device["memory_gib"].get<double>(), device["libraries"].get<std::string>());
  }
  if (list["devices"].empty()) fmt::print("  none; set ASSAY_DEVICE_PATH to the folder of the backends\n");
}

}  // namespace

int list_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("json", "print JSON")("plugin-path", po::value<std::vector<std::string>>()->composing(),
                                              "folder with plugins, searched first; may be repeated");
  const ParsedOptions options = parse_options(
      arguments, "assay list [options]", "Lists the workload plugins and the devices that this host finds.", visible);
  if (options.help) return run::exit_ok;
  const auto& values = options.values;
  json list = {{"plugins", json::array()}, {"devices", json::array()}};
  for (const plugin::ListedPlugin& plugin : plugin::list_plugins(plugin::plugin_folders(
           values.count("plugin-path") ? values["plugin-path"].as<std::vector<std::string>>() : Arguments{})))
    list["plugins"].push_back(plugin_json(plugin));
  for (const std::string& kind : plugin::installed_device_kinds()) list["devices"].push_back(device_json(kind));
  if (values.count("json"))
    fmt::print("{}\n", list.dump(2));
  else
    print_table(list);
  return run::exit_ok;
}

}  // namespace assay::host::cli
