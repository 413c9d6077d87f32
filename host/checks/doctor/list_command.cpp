#include "doctor/list_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "common/exit_code.hpp"
#include "common/text_format.hpp"
#include "plugin/search.hpp"
#include "results/terminal.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::doctor {
namespace {

using json = nlohmann::ordered_json;

struct Workload {
  std::string id, summary;
  std::string hidden_by;  // the file that is searched first and has a workload of this id; "": an experiment finds it
};

struct PluginRow {
  std::string file;
  std::string problem;  // "" when the plugin can be used
  std::string id, version, build, abi, min_host;
  std::vector<Workload> workloads;
};

struct DeviceRow {
  std::string kind;
  std::string note, problem;  // "" when the device was opened
  std::string name, libraries, abi;
  double memory_gib = 0;
};

PluginRow row_of(const plugin::ListedPlugin& listed) {
  PluginRow row;
  row.file = listed.file.string();
  row.problem = listed.problem;
  if (!listed.tables) return row;
  row.id = listed.tables->id, row.version = listed.tables->version, row.build = listed.tables->build;
  row.abi = listed.tables->abi();
  row.min_host = listed.tables->min_host();
  for (const plugin::WorkloadSchema& schema : listed.tables->workloads)
    row.workloads.push_back({schema.id, schema.summary, ""});
  return row;
}

// Rows are in the order in which an experiment's name is looked for.
void mark_hidden(std::vector<PluginRow>& rows) {
  std::map<std::string, std::string> first;
  for (PluginRow& row : rows)
    for (Workload& workload : row.workloads)
      if (const auto [known, is_first] = first.try_emplace(workload.id, row.file); !is_first)
        workload.hidden_by = known->second;
}

// The CPU is opened: it costs milliseconds. A GPU's backend would load its vendor's libraries; that waits for a run.
DeviceRow row_of(const std::string& kind) {
  DeviceRow row;
  row.kind = kind;
  if (kind != "cpu") {
    row.note = "backend installed; opened when a case asks for it";
    return row;
  }
  try {
    const plugin::OpenDevice device(plugin::find_device(kind), 0);
    const assay_device_info info = device.info();
    row.name = info.name;
    row.libraries = info.libraries;
    row.abi = fmt::format("{}.{}", device.api().abi_major, device.api().abi_minor);
    row.memory_gib = static_cast<double>(info.memory_total_bytes) / (1024.0 * 1024.0 * 1024.0);
  } catch (const std::exception& e) {
    row.problem = e.what();
  }
  return row;
}

json json_of(const PluginRow& row) {
  if (!row.problem.empty()) return {{"file", row.file}, {"problem", row.problem}};
  json workloads = json::array();
  for (const Workload& workload : row.workloads) {
    json one{{"id", workload.id}, {"summary", workload.summary}};
    if (!workload.hidden_by.empty()) one["hidden_by"] = workload.hidden_by;
    workloads.push_back(std::move(one));
  }
  return {{"file", row.file},
          {"id", row.id},
          {"version", row.version},
          {"build", row.build},
          {"abi", row.abi},
          {"min_host", row.min_host},
          {"workloads", std::move(workloads)}};
}

json json_of(const DeviceRow& row) {
  if (!row.note.empty()) return {{"kind", row.kind}, {"note", row.note}};
  if (!row.problem.empty()) return {{"kind", row.kind}, {"problem", row.problem}};
  return {{"kind", row.kind},
          {"name", row.name},
          {"libraries", row.libraries},
          {"memory_gib", row.memory_gib},
          {"abi", row.abi}};
}

void print_json(const std::vector<PluginRow>& plugins, const std::vector<DeviceRow>& devices) {
  json of_plugins = json::array(), of_devices = json::array();
  for (const PluginRow& row : plugins) of_plugins.push_back(json_of(row));
  for (const DeviceRow& row : devices) of_devices.push_back(json_of(row));
  fmt::print("{}\n", json{{"abi", telemetry::assay_abi()},
                          {"device_abi", telemetry::assay_device_abi()},
                          {"plugins", std::move(of_plugins)},
                          {"devices", std::move(of_devices)}}
                         .dump(2));
}

// Broken between words on a terminal, what does not fit being below the beginning of its text.
void print_entry(const std::string& head, const std::string& text, std::size_t indent) {
  const std::size_t width = ::isatty(STDOUT_FILENO) == 1 ? results::terminal_width(STDOUT_FILENO) : 0;
  fmt::print("{}", hanging(head, text, indent, width));
}

void print_table(const std::vector<PluginRow>& plugins, const std::vector<DeviceRow>& devices) {
  fmt::print("Plugins (this host: ABI {})\n", telemetry::assay_abi());
  for (const PluginRow& row : plugins) {
    if (!row.problem.empty()) {
      fmt::print("  unusable: {}\n", row.problem);
      continue;
    }
    constexpr std::size_t indent = 21;
    for (const Workload& workload : row.workloads)
      print_entry(fmt::format("  {} ", workload.id),
                  workload.hidden_by.empty()
                      ? workload.summary
                      : fmt::format("hidden: an experiment that names it gets that of {}", workload.hidden_by),
                  indent);
    print_entry("", fmt::format("{} {} ({}), ABI {}, {}", row.id, row.version, row.build, row.abi, row.file), indent);
  }
  if (plugins.empty()) fmt::print("  none; give --plugin-path or set ASSAY_PLUGIN_PATH\n");
  fmt::print("\nDevices (this host: ABI {})\n", telemetry::assay_device_abi());
  for (const DeviceRow& row : devices) {
    if (!row.problem.empty())
      fmt::print("  {:<6} unusable: {}\n", row.kind, row.problem);
    else if (!row.note.empty())
      fmt::print("  {:<6} {}\n", row.kind, row.note);
    else
      print_entry(fmt::format("  {} ", row.kind),
                  fmt::format("{}, {:.1f} GiB; {}; ABI {}", row.name, row.memory_gib, row.libraries, row.abi), 9);
  }
  if (devices.empty()) fmt::print("  none; set ASSAY_DEVICE_PATH to the folder of the backends\n");
}

}  // namespace

int list_plugins_and_devices(const ListRequest& request) {
  std::vector<PluginRow> plugins;
  for (const plugin::ListedPlugin& listed : plugin::list_plugins(plugin::plugin_folders(request.plugin_path)))
    plugins.push_back(row_of(listed));
  mark_hidden(plugins);
  std::vector<DeviceRow> devices;
  for (const std::string& kind : plugin::installed_device_kinds()) devices.push_back(row_of(kind));
  (request.json ? print_json : print_table)(plugins, devices);
  return exit_ok;
}

}  // namespace assay::host::doctor
