// Asks what a [run] device is on this machine.
#pragma once
#include <filesystem>
#include <string>

#include "launch/signals.hpp"
#include "worker/answer.hpp"

namespace assay::host::run {

// Asks in a separate process, so that no vendor library is opened here. Throws LaunchError when that process cannot be
// started.
worker::FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& device_folder,
                                   const std::filesystem::path& log_file, const launch::InterruptHandler& interrupts);

// The same of the backends that are installed, without a run.
worker::FoundDevice ask_for_device(const std::string& wanted);

}  // namespace assay::host::run
