// What the commands about batches share.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/status.hpp"
#include "batch/submission.hpp"

namespace assay::host::batch {

// The run that the user means: its folder, or the folder of an experiment's runs, whose newest batch it is. Throws
// UsageError.
std::filesystem::path batch_run(const std::string& given);

// A run's status by one question to the scheduler.
RunStatus status_of(const std::filesystem::path& run);

}  // namespace assay::host::batch
