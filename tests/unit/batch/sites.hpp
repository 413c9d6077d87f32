// Sites of each kind, for tests that change their settings.
#pragma once
#include "batch/site.hpp"

namespace assay::host::batch {

inline SlurmSettings& slurm_of(Site& site) { return std::get<SlurmSettings>(site.settings); }
inline const SlurmSettings& slurm_of(const Site& site) { return std::get<SlurmSettings>(site.settings); }
inline HostsSettings hosts_settings(std::vector<std::string> hosts) { return {{std::move(hosts)}}; }

}  // namespace assay::host::batch
