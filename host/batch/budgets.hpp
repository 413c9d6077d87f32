// How long a case will take, as far as anyone knows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "batch/site.hpp"
#include "experiment/experiment.hpp"

namespace assay::host::batch {

struct Budget {
  enum class Source { given, learned, site };
  double seconds = 0;
  Source source = Source::site;
};

// In the order of the experiment's cases. Given: [cluster] budget. Learned: from the records of the same case in the
// newest earlier runs of the experiment below `results`, with half of it added, and ten seconds. Else the site's.
std::vector<Budget> budgets_of(const experiment::Experiment& experiment, const Site& site,
                               const std::filesystem::path& results);

}  // namespace assay::host::batch
