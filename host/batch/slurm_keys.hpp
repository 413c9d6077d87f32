// The keys of the table [slurm].
#pragma once
#include <vector>

#include "batch/site_keys.hpp"

namespace assay::host::batch {

std::vector<SiteKey> slurm_keys();

}  // namespace assay::host::batch
