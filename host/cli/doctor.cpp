// assay doctor
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/options.hpp"
#include "doctor/report.hpp"
#include "plugin/search.hpp"
#include "record/json.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* about_doctor =
    "Looks at this machine before anyone measures on it: what it has, what assay would use, and what would\n"
    "spoil a measurement, each with its effect and a remedy. Changes nothing. The exit code is 1 where there is\n"
    "an error or a warning.";

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

std::size_t usable_plugins(const Arguments& folders) {
  const auto listed = plugin::list_plugins(plugin::plugin_folders(folders));
  return static_cast<std::size_t>(std::count_if(
      listed.begin(), listed.end(), [](const plugin::ListedPlugin& each) { return each.tables.has_value(); }));
}

}  // namespace

int doctor_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("json", "print one JSON object")("output", po::value<std::string>(),
                                                         "the folder for results that is meant (default: results)")(
      "plugin-path", po::value<Arguments>()->composing(), "folder with plugins, searched first; repeatable")(
      "root", po::value<std::string>(),
      "a folder that stands for /: what was copied from /proc, /sys and /etc of another machine; no device is asked");
  const ParsedOptions options = parse_options(arguments, "assay doctor [options]", about_doctor, visible, "nothing", 0);
  if (options.help) return run::exit_ok;
  const po::variables_map& values = options.values;

  doctor::Facts facts;
  doctor::MachineSource source;
  if (values.count("output")) source.results = values["output"].as<std::string>();
  if (values.count("root")) {
    source.root = values["root"].as<std::string>();
    std::error_code error;
    if (!fs::is_directory(source.root / "proc", error))
      throw UsageError(fmt::format("--root is {}, which has no folder 'proc'; expected a folder that stands for /",
                                   source.root.string()));
    source.window = {};
    facts.devices_asked = false;
  }
  facts.machine = doctor::look_at_machine(source);
  if (facts.devices_asked) {
    facts.devices = doctor::ask_devices();
    facts.communicators = installed_communicators();
    facts.plugins = usable_plugins(list_of(values, "plugin-path"));
  }
  const std::vector<doctor::Finding> findings = doctor::findings_of(facts);
  if (values.count("json"))
    fmt::print("{}\n", record::json_text(doctor::report_json(facts, findings), 2));
  else
    fmt::print(
        "{}", doctor::report_text(facts, findings, results::terminal_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO)));
  const bool is_spoiled = std::any_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    return finding.row->severity != doctor::Severity::note;
  });
  return is_spoiled ? run::exit_failed : run::exit_ok;
}

}  // namespace assay::host::cli
