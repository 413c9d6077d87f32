#include "run/found_device.hpp"

#include <fmt/format.h>

#include "launch/supervise_group.hpp"
#include "run/group_request.hpp"
#include "run/run_records.hpp"
#include "worker/device_probe.hpp"

namespace assay::host {

FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& log_file,
                           const InterruptHandler& interrupts) {
  const GroupOutcome outcome = supervise_group(probe_request(wanted, log_file, interrupts), {}, interrupts.count());
  const WorkerOutcome& worker = outcome.workers.front();
  if (worker.status == WorkerStatus::finished && worker.events.result)
    if (auto found = found_device_in(*worker.events.result)) return std::move(*found);
  FoundDevice none;
  none.status = "failed";
  none.reason = fmt::format("asking for device '{}': {}", wanted, worker.reason);
  return none;
}

FoundDevice ask_for_device_here(const std::string& wanted) { return found_device_of(probe_device(wanted)); }

}  // namespace assay::host
