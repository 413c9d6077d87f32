// A note where [profile] nsys cannot be honoured.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "run/plan.hpp"

namespace assay::host::run {

// The note for the user, with the command that records the run's cases by hand; nothing when there is nothing to say.
// `in_process`: as the command line asks.
std::optional<std::string> nsys_note(const RunPlan& plan, bool in_process, const std::filesystem::path& run_folder,
                                     const std::filesystem::path& plugin_file);

}  // namespace assay::host::run
