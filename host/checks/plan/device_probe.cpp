#include "plan/device_probe.hpp"

#include <assay/probe.h>
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "common/child.hpp"
#include "common/usage_error.hpp"
#include "experiment/resolved.hpp"
#include "plugin/device_library.hpp"
#include "plugin/search.hpp"

namespace assay::host::plan {
namespace {

constexpr std::chrono::seconds deadline_of_probe{120};
constexpr char separator = '\t';

const assay_probe* probes_of(const plugin::OpenDevice& device) {
  const auto* probe = static_cast<const assay_probe*>(device.api().get_extension(ASSAY_EXT_PROBE));
  return probe && ASSAY_HAS(probe, assay_probe, run) && probe->run && probe->names ? probe : nullptr;
}

// "key TAB n|t TAB value", one line each.
assay_probe_sink sink_to(const Send& send) {
  return {sizeof(assay_probe_sink), const_cast<Send*>(&send),
          [](void* context, const char* key, double value) noexcept {
            (*static_cast<const Send*>(context))(fmt::format("{}{}n{}{}\n", key, separator, separator, value));
          },
          [](void* context, const char* key, const char* value) noexcept {
            (*static_cast<const Send*>(context))(fmt::format("{}{}t{}{}\n", key, separator, separator, value));
          }};
}

struct Found {
  std::string table, name, text;  // the text as TOML has it
  std::optional<double> number;
};

// Nothing for a line of another form, or a number that no device has.
std::optional<Found> found_in(const std::string& line) {
  const std::size_t kind = line.find(separator), value = line.find(separator, kind + 1);
  const std::size_t dot = line.find('.');
  if (value == std::string::npos || dot == std::string::npos || dot > kind) return std::nullopt;
  const std::string written = line.substr(value + 1);
  Found found{line.substr(0, dot), line.substr(dot + 1, kind - dot - 1), "", {}};
  if (line[kind + 1] == 't') {
    found.text = experiment::toml_text(written);
    return found;
  }
  double number = 0;
  if (std::from_chars(written.data(), written.data() + written.size(), number).ec != std::errc() ||
      !std::isfinite(number))
    return std::nullopt;
  found.text = fmt::format("{:.6g}", number), found.number = number;
  return found;
}

void take_peak(const Found& found, ProbedDevice& probed) {
  if (found.table != "rate" || !found.number) return;
  if (found.name == "copy_gbytes_per_s") probed.copy_gbytes_per_s = *found.number;
  for (std::size_t i = 0; i < experiment::arithmetics.size(); ++i)
    if (found.name == fmt::format("{}_normal_tflop_per_s", experiment::arithmetics[i]))
      probed.tflop_per_s[i] = *found.number;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

}  // namespace

ProbedDevice probe_device(const std::string& kind) {
  ProbedDevice probed;
  std::vector<std::string> names;
  const ChildEnd asked = run_in_child([&](const Send& send) {
    const plugin::OpenDevice device(plugin::find_device(kind), 0);
    if (const assay_probe* const probe = probes_of(device))
      send(fmt::format("{}\n{}", device.info().libraries, probe->names));
  });
  if (!asked.is_clean()) throw UsageError(fmt::format("opening the device '{}' ended with {}", kind, asked.how()));
  if (asked.text.empty())
    throw UsageError(
        fmt::format("the backend of the device '{}' has no probes (assay.probe/1); leave out --probe", kind));
  std::istringstream words(asked.text);
  std::string libraries;
  std::getline(words, libraries);
  for (std::string name; words >> name;) names.push_back(name);

  std::map<std::string, std::string> tables;
  std::string failures;
  for (const std::string& name : names) {
    const ChildEnd end = run_in_child(
        [&](const Send& send) {
          const plugin::OpenDevice device(plugin::find_device(kind), 0);
          const assay_probe_sink sink = sink_to(send);
          const assay_status status = probes_of(device)->run(device.handle(), name.c_str(), &sink);
          if (status != ASSAY_OK) send(fmt::format("failure{}{}\n", separator, one_line(device.api().error_text())));
        },
        {.deadline = deadline_of_probe});
    std::istringstream lines(end.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("failure\t")) {
        failures += fmt::format("# The probe '{}' failed: {}\n", name, line.substr(8));
      } else if (const auto found = found_in(line)) {
        tables[found->table] += fmt::format("{} = {}\n", found->name, found->text);
        take_peak(*found, probed);
      }
    }
    if (!end.is_clean()) failures += fmt::format("# The probe '{}' ended with {}\n", name, end.how());
  }
  if (!failures.empty()) probed.tables += "\n" + failures;
  const std::string source = experiment::toml_text("assay describe-device --probe; " + libraries);
  for (const auto& [table, lines] : tables) {
    probed.tables += fmt::format("\n[{}]\n{}", table, lines);
    probed.sources += fmt::format("{} = {}\n", table, source);
  }
  return probed;
}

}  // namespace assay::host::plan
