// `assay batch-runner RUN HOST LAUNCH`: started by `assay submit` on a host of a site without a scheduler
// (hosts_site.hpp), never by a user. It takes shards one after the other until none is left for its host, and outlives
// the submitting session.
#pragma once
#include <filesystem>
#include <string>

namespace assay::host::batch {

// Returns its exit code.
int run_shards_of_host(const std::filesystem::path& run, const std::string& host, const std::string& launch);

// The folder in `tmp` with the locks of this user's runners, which is made where it is missing. Throws SchedulerError
// where it is a link, another user's, or open to others.
std::filesystem::path folder_of_locks(const std::filesystem::path& tmp);
// The lock in it of this machine, which sites may call by several names. `host`: where it does not know which it is.
std::filesystem::path lock_of_machine(const std::filesystem::path& folder, const std::string& host);

}  // namespace assay::host::batch
