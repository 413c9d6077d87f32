// A process of a launch that does not lead.
#pragma once
#include <filesystem>

#include "wireup/key_value.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::run {

// Carries out orders until it is dismissed. Returns the exit code; says on standard error when rank 0 cannot be reached
// or is lost.
int follow(const wireup::LaunchedRank& launched, const std::filesystem::path& rendezvous_folder,
           wireup::KeyValue::Timeout patience);

}  // namespace assay::host::run
