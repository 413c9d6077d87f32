#include "run/found_device.hpp"

#include <fmt/format.h>

#include "launch/supervise_group.hpp"
#include "run/group_request.hpp"

namespace assay::host::run {

worker::FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& device_folder,
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

}  // namespace assay::host::run
