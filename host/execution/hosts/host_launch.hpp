// `assay run --hosts`: starts ranks over ssh where nothing else does, and is to them what a launcher is: passes on what
// they print, and leaves none behind, whichever of them, of the hosts or of the connections is lost.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/host_list.hpp"
#include "hosts/host_error.hpp"

namespace assay::host::hosts {

struct HostLaunch {
  std::vector<SshHost> hosts;                // the first has rank 0, the results and the records
  std::vector<std::string> arguments;        // of assay: "run", ...
  std::vector<std::filesystem::path> files;  // that must be the same on all hosts, beside the program and its libraries
  std::filesystem::path shared_folder;       // of results
  bool is_each_alone = false;                // no rank waits for another one: none ends because one has ended
  std::string remedy = "--resume runs the rest";  // after a loss, for people
};

// Returns rank 0's exit code; 130 after an interrupt, 1 where a rank or a host was lost; with `is_each_alone` that of
// exit_code_of_ranks_alone(). Throws HostError when nothing could be started, and when not all hosts have confirmed
// that their ranks have ended.
int launch_on_hosts(const HostLaunch& launch);

// Of ranks none of which waits for another one, by rank; nothing for one that was lost. A rank's exit_unhealthy comes
// before all else, since the script of a batch then looks for other nodes; then rank 0's code where it has failed; then
// that of the last rank that has.
int exit_code_of_ranks_alone(const std::vector<std::optional<int>>& codes);

// What hosts get of the environment: all that is recorded with a run (telemetry/recorded_texts.hpp), where programs and
// libraries are found, assay's own variables, and those that ASSAY_HOSTS_ENVIRONMENT names, separated by commas.
nlohmann::json passed_environment();
bool is_passed_on(std::string_view name, std::string_view named);

}  // namespace assay::host::hosts
