// assay validate PLUGIN
#include "validate/validate.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "common/text_format.hpp"
#include "plugin/search.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

// Finds the file of what was named: a path, the name of a plugin on the plugin path, or the id of a workload.
void find_file(const std::string& given, const std::vector<fs::path>& folders, validate::Request& request) {
  std::error_code error;
  if (fs::exists(given, error)) {
    request.file = fs::absolute(given).lexically_normal();
    return;
  }
  const std::size_t colon = given.rfind(':');
  const std::string stem = given.substr(0, colon);
  if (colon != std::string::npos) request.workload = given.substr(colon + 1);
  if (fs::exists(stem, error)) {
    request.file = fs::absolute(stem).lexically_normal();
    return;
  }
  for (const fs::path& folder : folders)
    if (stem.find('/') == std::string::npos && fs::exists(folder / (stem + ".so"), error)) {
      request.file = fs::absolute(folder / (stem + ".so")).lexically_normal();
      return;
    }
  // The id of a workload in a plugin of another name.
  try {
    const plugin::FoundWorkload found = plugin::find_workload(given, folders, fs::current_path());
    request.file = found.file, request.workload = found.schema.id;
  } catch (const plugin::PluginError& e) {
    throw UsageError(e.what());
  }
}

int level_of(const po::variables_map& values) {
  const int level = values.count("level") ? values["level"].as<int>() : validate::highest_level;
  if (level < 1 || level > validate::highest_level)
    throw UsageError(fmt::format("--level is {}; expected 1 to {}", level, validate::highest_level));
  return level;
}

}  // namespace

int validate_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("level", po::value<int>(),
                        "1: what it declares; 2: and lives of its workloads; 3 (the default): and what they do with "
                        "refused and changed memory")("json", "print JSON")(
      "set", po::value<Arguments>()->composing(),
      "KEY=VALUE: a parameter of the case that is tried, as in `assay run`; may be repeated")(
      "device", po::value<std::string>(), "cpu or cuda; auto is the CPU where the workload runs on it")(
      "timeout", po::value<double>(), "seconds that each probe may take (default 60): what is asked of one process")(
      "strict", "a warning is a failure, too: exit code 1")("in-process", "ask in this process, for a debugger")(
      "plugin-path", po::value<Arguments>()->composing(), "folder with plugins, searched first; may be repeated");
  const ParsedOptions options = parse_options(
      arguments, "assay validate PLUGIN [options]",
      "Asks of a plugin all that a host can check of one that it does not know. PLUGIN is a file, or a name\n"
      "on the plugin path; 'PLUGIN:WORKLOAD' asks one of several workloads. Exit code 0: no error, 1: errors,\n"
      "2: a wrong command line.",
      visible, "plugin");
  if (options.help) return run::exit_ok;
  const auto& values = options.values;
  if (!values.count("plugin")) throw UsageError("validate needs a plugin; expected a file such as ./my_plugin.so");
  validate::Request request;
  find_file(values["plugin"].as<Arguments>().front(), plugin::plugin_folders(list_of(values, "plugin-path")), request);
  request.level = level_of(values);
  request.set = list_of(values, "set");
  if (values.count("device")) request.device = values["device"].as<std::string>();
  if (request.device != "auto" && request.device != "cpu" && request.device != "cuda")
    throw UsageError(fmt::format("--device is '{}'; expected auto, cpu or cuda", request.device));
  if (values.count("timeout")) {
    const double seconds = values["timeout"].as<double>();
    if (!(seconds > 0 && seconds < 1e6)) throw UsageError("--timeout is no number of seconds above 0");
    request.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  request.in_process = values.count("in-process") > 0;
  const bool is_watched = isatty(STDERR_FILENO) == 1 && !values.count("json");
  const auto show = [&](const std::string& text) {
    fmt::print(stderr, "\r\033[K{}", fit_to_width(text, 79));
    std::fflush(stderr);
  };
  if (is_watched) request.tell_progress = show;
  try {
    const validate::Report report = validate::validate(request);
    if (is_watched) show("");
    if (values.count("json"))
      fmt::print("{}\n", validate::to_json(report).dump(2));
    else
      fmt::print("{}", validate::to_table(report));
    const bool has_failed = report.count(validate::Severity::error) > 0 ||
                            (values.count("strict") && report.count(validate::Severity::warning) > 0);
    return has_failed ? run::exit_failed : run::exit_ok;
  } catch (const validate::RequestError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
