// One case on several ranks, as a record.
#pragma once
#include "run/case_process.hpp"
#include "run/crew.hpp"

namespace assay::host {

struct RankCount {
  std::int32_t count = 1;
  std::string refusal;  // "" or why the case cannot run here
};
// What [run] ranks means here. `device_count`: of the devices that this process sees.
RankCount rank_count_of(const Case& c, const Crew& crew, const std::string& device_kind, std::int32_t device_count,
                        bool in_process);

// Blocks until all ranks have ended. Throws LaunchError when a worker cannot be started here.
CaseOutcome run_ranks(const Case& c, std::int32_t count, const std::string& device_kind, std::int32_t device_count,
                      const CaseContext& context, Crew& crew);

}  // namespace assay::host
