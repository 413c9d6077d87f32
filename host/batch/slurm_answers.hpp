// What Slurm's programs answer, as values. Text in, data out; known to hold for Slurm 22.05 to 24.11 by recorded
// answers.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::batch {

// One line of squeue: a job, a running task of an array, or those tasks of an array that still wait.
struct QueuedJob {
  std::string job;    // the id that its processes see
  std::string array;  // of the array; its own id without one
  std::vector<std::pair<std::int64_t, std::int64_t>>
      tasks;                   // of the array, from and to, both included; empty: no array
  std::int64_t task_step = 1;  // of those ranges
  bool is_cut = false;         // squeue has left out the end of a long list: what lies beyond may be in it, too
  std::string state;           // "RUNNING", "PENDING", ...
  std::string nodes;           // "n[1-3]"
  std::string reason;          // why it waits
  std::string comment;
  std::string cluster;  // that was asked; "": the one of this machine

  bool has_task(std::int64_t task) const;
  bool is_active() const;   // it waits, runs, or will run again; not over
  bool is_pending() const;  // it waits for its first start or another one: nothing of it runs
};

// The columns asked for, and the separator between them.
inline constexpr std::string_view queue_format = "%A|%F|%K|%T|%N|%r|%k";
// Other lines are left out.
std::vector<QueuedJob> parse_queue(std::string_view squeue_output);

// The number of a job, and the cluster that has it: "" for the one of this machine.
struct SubmittedJob {
  std::string number, cluster;
  bool operator==(const SubmittedJob&) const = default;
};
// Of `sbatch --parsable`: "123" or "123;cluster". Nothing unless exactly one line is such an answer: a site may have
// put a program of another mind in the place of sbatch.
std::optional<SubmittedJob> parse_submitted(std::string_view sbatch_output);
// The same in the file where it is kept.
std::string text_of(const SubmittedJob& job);

// "FAILED, exit code 0:53" of `scontrol --oneliner show job`; "" when it says no such thing.
std::string parse_end_of_job(std::string_view scontrol_output);

struct NodeState {
  std::string name;
  std::string state;  // "idle", "mixed", "down*", ...
  std::int64_t cpus = 0;
  std::string gres;  // "gpu:8", "gpu:h100:8(S:0-1)"; "(null)" is ""
  std::string features;
  std::string time_limit;  // of the partition: "4:00:00", "infinite"
  std::string partition;   // its default has a '*' at the end
  // Jobs can start there, now or later. A reserved node is for those that name a reservation.
  bool is_usable(bool with_reservation = false) const;
  std::int64_t gpus() const;
};
inline constexpr std::string_view nodes_format = "%N|%T|%c|%G|%f|%l|%P";
std::vector<NodeState> parse_nodes(std::string_view sinfo_output);

// "gpu*|up" by line: the partitions with their states.
std::map<std::string, std::string> parse_partition_states(std::string_view sinfo_output);

// The value of "Name   = value" in what `scontrol show config` says.
std::optional<std::string> parse_config_value(std::string_view scontrol_output, std::string_view name);

// "1-02:03:04", "4:00:00", "30:00", "30" (minutes): in seconds. Nothing for "infinite" and what is no time.
std::optional<std::int64_t> parse_time_limit_s(std::string_view text);
// "1-02:03:04": as sbatch takes it, up to a whole minute.
std::string time_limit_text(double seconds);

// "n[1-3,7],m2" one by one. Nothing when it is no such list.
std::optional<std::vector<std::string>> expand_nodes(std::string_view list);

}  // namespace assay::host::batch
