#include "doctor/doctor_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/usage_error.hpp"
#include "doctor/report.hpp"
#include "plugin/search.hpp"
#include "record/json.hpp"
#include "results/terminal.hpp"

namespace assay::host::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> installed_communicators() {
  const std::string prefix = "libassay_comm_";
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(plugin::comm_folder(), error), end; !error && it != end; it.increment(error))
    if (const std::string name = it->path().stem(); it->path().extension() == ".so" && name.starts_with(prefix))
      names.push_back(name.substr(prefix.size()));
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t usable_plugins(const std::vector<std::string>& folders) {
  const auto listed = plugin::list_plugins(plugin::plugin_folders(folders));
  return static_cast<std::size_t>(std::count_if(
      listed.begin(), listed.end(), [](const plugin::ListedPlugin& each) { return each.tables.has_value(); }));
}

}  // namespace

int examine(const DoctorRequest& request) {
  Facts facts;
  MachineSource source;
  if (request.output) source.results = *request.output;
  if (request.root) {
    source.root = *request.root;
    std::error_code error;
    if (!fs::is_directory(source.root / "proc", error))
      throw UsageError(fmt::format("--root is {}, which has no folder 'proc'; expected a folder that stands for /",
                                   source.root.string()));
    source.window = {};
    facts.devices_asked = false;
  }
  facts.machine = look_at_machine(source);
  if (facts.devices_asked) {
    facts.devices = ask_devices();
    facts.communicators = installed_communicators();
    facts.plugins = usable_plugins(request.plugin_path);
  }
  const std::vector<Finding> findings = findings_of(facts);
  if (request.json)
    fmt::print("{}\n", record::json_text(report_json(facts, findings), 2));
  else
    fmt::print("{}", report_text(facts, findings, results::terminal_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO)));
  const bool is_spoiled = std::any_of(findings.begin(), findings.end(),
                                      [](const Finding& finding) { return finding.row->severity != Severity::note; });
  return is_spoiled ? exit_failed : exit_ok;
}

}  // namespace assay::host::doctor
