// `assay site`: the site files that there are, or a new one for this cluster.
#pragma once
#include <optional>
#include <string>

namespace assay::host::batch {

struct SiteRequest {
  std::optional<std::string> new_name, partition;
};

// Prints the sites, or writes one. Returns the exit code. Throws UsageError, SlurmError.
int sites(const SiteRequest& request);

}  // namespace assay::host::batch
