#include "validate/validate_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/exit_code.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "plugin/device_words.hpp"
#include "plugin/search.hpp"
#include "validate/validate.hpp"

namespace assay::host::validate {
namespace {

namespace fs = std::filesystem;

// Finds the file of what was named: a path, the name of a plugin on the plugin path, or the id of a workload.
void find_file(const std::string& given, const std::vector<fs::path>& folders, Request& request) {
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

int level_of(const ValidateRequest& asked) {
  const int level = asked.level.value_or(highest_level);
  if (level < 1 || level > highest_level)
    throw UsageError(fmt::format("--level is {}; expected 1 to {}", level, highest_level));
  return level;
}

Request request_of(const ValidateRequest& asked) {
  Request request;
  find_file(asked.plugin, plugin::plugin_folders(asked.plugin_path), request);
  request.level = level_of(asked);
  request.set = asked.set;
  request.device = asked.device.value_or(request.device);
  if (!plugin::is_device_word(request.device))
    throw UsageError(fmt::format("--device is '{}'; expected {}", request.device, plugin::device_words_in_sentence()));
  if (asked.timeout) {
    const double seconds = *asked.timeout;
    if (!(seconds > 0 && seconds < 1e6)) throw UsageError("--timeout is no number of seconds above 0");
    request.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  request.in_process = asked.in_process;
  return request;
}

}  // namespace

int validate_plugin(const ValidateRequest& asked) {
  Request request = request_of(asked);
  const bool is_watched = isatty(STDERR_FILENO) == 1 && !asked.json;
  const auto show = [&](const std::string& text) {
    fmt::print(stderr, "\r\033[K{}", fit_to_width(text, 79));
    std::fflush(stderr);
  };
  if (is_watched) request.tell_progress = show;
  const Report report = validate(request);
  if (is_watched) show("");
  if (asked.json)
    fmt::print("{}\n", to_json(report).dump(2));
  else
    fmt::print("{}", to_table(report, asked.all));
  const bool has_failed = report.count(Severity::error) > 0 || (asked.strict && report.count(Severity::warning) > 0);
  return has_failed ? exit_failed : exit_ok;
}

}  // namespace assay::host::validate
