// Turns the specifications of ranks into the processes that carry them out on this machine.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "launch/signals.hpp"
#include "launch/supervise_group.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

// The ranks of one case that run here, of all its ranks. The callbacks are the caller's to add. Of several ranks each
// is judged by its result, and a stall ends them; a rank that is alone runs to its own end or to its timeout.
launch::GroupRequest group_request(const std::vector<worker::CaseSpec>& here,
                                   const launch::InterruptHandler& interrupts);

// One worker that opens a device and reports what it found.
// `device_folder`: where backends are looked for first; empty: in the folders of this process alone.
launch::GroupRequest probe_request(const std::string& wanted_device, const std::filesystem::path& device_folder,
                                   const std::filesystem::path& log_file, const launch::InterruptHandler& interrupts);

}  // namespace assay::host::run
