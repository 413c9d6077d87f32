// Holds the options that `assay history` and the history of `assay report` share.
#pragma once
#include <boost/program_options/variables_map.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::cli {

// --since: "2026-11-03", "2026-11-03T12:00:00Z", or an age, "30d", "4w". In UTC as records have it; "" where it is not
// given. Throws UsageError.
std::string since_when(const boost::program_options::variables_map& values);

// --results, each a folder; "results" where it is not given. Throws UsageError.
std::vector<std::filesystem::path> folders_of_results(const boost::program_options::variables_map& values);

}  // namespace assay::host::cli
