#include "run/found_device.hpp"

#include <fmt/format.h>

#include "launch/supervise_group.hpp"
#include "run/group_request.hpp"

namespace assay::host {

FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& log_file,
                           const InterruptHandler& interrupts) {
  const GroupOutcome outcome = supervise_group(probe_request(wanted, log_file, interrupts), {}, interrupts.count());
  const WorkerOutcome& worker = outcome.workers.front();
  if (worker.status == WorkerStatus::finished && worker.events.result)
    if (auto found = found_device_from(*worker.events.result)) return std::move(*found);
  FoundDevice none;
  none.reason = fmt::format("asking for device '{}': {}", wanted, worker.reason);
  return none;
}

}  // namespace assay::host
