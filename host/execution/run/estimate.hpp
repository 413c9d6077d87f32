// How long cases will take, said before they run: as long as the same cases took in earlier runs of the experiment.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "experiment/experiment.hpp"
#include "run/plan.hpp"

namespace assay::host::run {

struct Estimate {
  // In the order of the cases that were asked for: from the start of the case to its end. 0: it is refused, and will
  // not be started. Nothing: no run has had it.
  std::vector<std::optional<double>> seconds;
  std::vector<std::filesystem::path> runs;  // that say so, the newest first
  std::size_t known() const;
  double total_s() const;  // of those that are known
};

// By the newest of the experiment's runs that has a case of the same workload, parameters, axes, ranks and ways of
// measuring on a device of the same name, be it of other code: its time is a guess in any case. Of a case that
// ended early nothing is known.
Estimate estimate_by_earlier_runs(const experiment::Experiment& experiment, const plugin::WorkloadSchema& schema,
                                  const std::vector<const CasePlan*>& cases);

}  // namespace assay::host::run
