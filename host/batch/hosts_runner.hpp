// `assay batch-runner RUN HOST LAUNCH`: started by `assay submit` on a host of a site without a scheduler
// (hosts_site.hpp), never by a user. It takes shards one after the other until none is left for its host, and outlives
// the submitting session.
#pragma once
#include <filesystem>
#include <string>

namespace assay::host::batch {

// Returns its exit code.
int run_shards_of_host(const std::filesystem::path& run, const std::string& host, const std::string& launch);

}  // namespace assay::host::batch
