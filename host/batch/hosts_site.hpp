// Sites without a scheduler: hosts that ssh reaches, on each of which a detached runner takes one shard after the other
// from the run's folder, which all of them see. Files are all that submit, runners, status and cancel share:
//
//   <run>/batch/hosts/n1.json          the runner of a host: what it is at, and when it last gave a sign of life
//   <run>/batch/hosts/claim-0-3        array 0, task 3: the host that has taken it
//   <run>/batch/hosts/ended-0-3        how that ended, in a word
//   <run>/batch/cancelled/0            nobody takes a task of array 0 any more, and who is at one stops
//   (submission.hpp)
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "batch/scheduler.hpp"
#include "batch/script.hpp"
#include "batch/site.hpp"
#include "batch/site_check.hpp"
#include "batch/submission.hpp"
#include "common/host_list.hpp"

namespace assay::host::batch {

inline constexpr std::chrono::seconds grace_of_shard{30};  // that is told to stop; then it is killed
inline constexpr const char* job_on_hosts = "hosts-";      // begins the number of an array's job

class HostsScheduler : public Scheduler {
 public:
  HostsScheduler(Submission submission, std::filesystem::path run);
  std::optional<SubmittedJob> queue_array(const std::string& script,
                                          const std::optional<std::string>& after_ok) const override;
  // Checks the hosts (hosts/host_check.hpp) and starts a runner on each that has none.
  void start_queued(const std::function<void(const std::string&)>& said) const override;
  std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const override;
  void cancel(const std::vector<SubmittedJob>& arrays) const override;
  std::int64_t array_size_max() const override;

 private:
  Submission submission_;
  std::filesystem::path run_;
  std::vector<SshHost> hosts_;
};

// One shard on one host, or ranks of it over several.
std::string hosts_script(const ScriptInput& input);
SiteFindings check_hosts(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns& runs);

// Of the files above.
std::filesystem::path hosts_folder(const std::filesystem::path& run);
std::filesystem::path claim_file(const std::filesystem::path& run, std::int64_t array, std::int64_t task);
// Whose claim it is; "" where there is none, or one that was not written to its end.
std::string holder_of_task(const std::filesystem::path& run, std::int64_t array, std::int64_t task);
// Whether the task is now, or was before, this host's. A claim that is empty or torn is free after hosts::silence().
bool claim_task(const std::filesystem::path& run, std::int64_t array, std::int64_t task, const std::string& host);
// Frees the task for other hosts, where it is this one's.
void give_back_task(const std::filesystem::path& run, std::int64_t array, std::int64_t task, const std::string& host);
std::filesystem::path ended_file(const std::filesystem::path& run, std::int64_t array, std::int64_t task);
std::string line_of_file(const std::filesystem::path& file);  // without its line end; "" where there is none

struct RunnerState {
  std::string host, state;  // "waiting" for another batch on its host, "running", "ended"
  std::int64_t array = -1;  // that it is at
  std::int64_t pid = 0;
  std::string launch;  // of the `assay submit` that has started it
  double alive_s = 0;  // seconds since 1970
  bool is_alive(double now_s) const;
};
void write_runner_state(const std::filesystem::path& run, const RunnerState& state);
std::optional<RunnerState> read_runner_state(const std::filesystem::path& run, const std::string& host);

// The hosts of the group that runs tasks of this shape with `host` in it, its leader first; none where it has no part.
// Groups of neighbours, unless the shape names its hosts.
std::vector<std::string> group_of(const Shape& shape, const std::vector<SshHost>& hosts, const std::string& host);

}  // namespace assay::host::batch
