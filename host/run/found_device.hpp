// The device that [run] device means on this machine.
#pragma once
#include <filesystem>
#include <string>

#include "launch/signals.hpp"
#include "results/record.hpp"

namespace assay::host {

struct FoundDevice {
  std::string status = "ok";  // or "unsupported", "failed": no case can run on it, for this `reason`
  std::string reason;
  std::string note;                   // for the user; "" when there is none
  std::string kind, name, libraries;  // "cpu" or "cuda", never "auto"
  std::int32_t count = 1;             // of that kind, as this process sees them
  Record record;                      // `device` of a case's record

  bool is_usable() const { return status == "ok"; }
};

// Asked in a process of its own, so that no vendor library is opened here. Throws LaunchError when that process cannot
// be started.
FoundDevice ask_for_device(const std::string& wanted, const std::filesystem::path& log_file,
                           const InterruptHandler& interrupts);
// The same asked here, for --in-process.
FoundDevice ask_for_device_here(const std::string& wanted);

}  // namespace assay::host
