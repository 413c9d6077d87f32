#include "run/found_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launch/supervise_group.hpp"
#include "plugin/device_words.hpp"
#include "plugin/search.hpp"
#include "run/group_request.hpp"
#include "run/scratch_folder.hpp"

namespace assay::host::run {

namespace {

worker::FoundDevice ask_for_kind(const std::string& wanted, const std::filesystem::path& device_folder,
                                 const std::filesystem::path& log_file, const launch::InterruptHandler& interrupts) {
  const launch::GroupOutcome outcome =
      launch::supervise_group(probe_request(wanted, device_folder, log_file, interrupts), {}, interrupts.count());
  const launch::WorkerOutcome& worker = outcome.workers.front();
  if (worker.status == launch::WorkerStatus::finished && worker.events.result)
    if (auto found = worker::found_device_from(*worker.events.result)) return std::move(*found);
  worker::FoundDevice none;
  none.reason = fmt::format("asking for device '{}': {}", wanted, worker.reason);
  return none;
}

// Why it is not usable, without the remedy that stands behind "; ": whoever did not ask for a GPU does not need it.
std::string short_cause(const worker::FoundDevice& found) {
  const std::string& text = found.cause.empty() ? found.reason : found.cause;
  return text.substr(0, text.find("; ")) + "; `assay doctor` says more";
}

}  // namespace

worker::FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& device_folder,
                                   const std::filesystem::path& log_file, const launch::InterruptHandler& interrupts) {
  if (wanted != "auto") return ask_for_kind(wanted, device_folder, log_file, interrupts);
  const std::vector<std::string> installed = plugin::installed_device_kinds();
  worker::FoundDevice found;
  std::string note;  // why the device is none of the kinds that come first
  const std::vector<std::string> kinds = plugin::kinds_for_auto(plugin::other_device_kinds());
  for (const std::string& kind : kinds) {
    const bool is_last = &kind == &kinds.back();
    if (!is_last && std::find(installed.begin(), installed.end(), kind) == installed.end()) {
      note = fmt::format("no {} backend is installed", kind);
      continue;
    }
    found = ask_for_kind(kind, device_folder, log_file, interrupts);
    if (found.is_usable()) {
      if (!note.empty()) found.note = fmt::format("device = \"auto\" took the {}: {}", kind, note);
      return found;
    }
    note = short_cause(found);
  }
  return found;
}

worker::FoundDevice ask_for_device(const std::string& wanted) {
  const launch::InterruptHandler interrupts;
  const ScratchFolder scratch;
  return ask_for_device(wanted, "", scratch.path() / "devices.log", interrupts);
}

}  // namespace assay::host::run
