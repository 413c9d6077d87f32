// Sets what Nsight Compute has counted in a step beside what `assay plan` says that the step's operations take at
// least: a row for each kind of operation.
#pragma once
#include "record/case_record.hpp"
#include "results/table.hpp"

#include <filesystem>
#include <vector>

namespace assay::host::plan {

// The records are those that have counts. The plan is that of the run's own experiment.toml, on the device that a
// record names; `plugin_folders` are searched first. A case that cannot be planned has empty cells there, and standard
// error says why. Throws UsageError where the folder has no experiment that can be read.
results::Table counted_beside_plan(const std::vector<record::CaseRecord>& records, const std::filesystem::path& run,
                                   const std::vector<std::string>& plugin_folders);

}  // namespace assay::host::plan
