// Makes the specification of each rank of a planned case.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "run/plan.hpp"
#include "run/rank_place.hpp"
#include "run/target.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

// Several ranks find each other through this. A rank that is alone needs none of it.
struct RankMeeting {
  wireup::Endpoint service;
  std::string prefix;  // of the case's keys
};

// One for each place, in the order of ranks. Files and logs lie in the run folder. The plugin is the original: which
// copies a case opens is for TakenFiles to say.
std::vector<worker::CaseSpec> specs_of_ranks(const CasePlan& planned, const RunTarget& target,
                                             const std::filesystem::path& run_folder,
                                             const std::vector<RankPlace>& places, const RankMeeting& meeting);

}  // namespace assay::host::run
