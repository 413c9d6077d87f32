// Starting a worker process and owning it.
//
// The worker finds: standard input /dev/null, standard output and error its log, and the three descriptors below;
// nothing else is open. It leads its own process group, is the kernel's first choice when memory runs out, leaves
// no core file, and has default signal handling. Its parent is a keeper (launch/keeper.hpp): neither the worker nor
// anything that it has started outlives this host, however the host ends.
#pragma once
#include <fmt/format.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "launch/launch_error.hpp"
#include "launch/worker_log.hpp"

namespace assay::host::launch {

constexpr int worker_event_fd = 3;  // a pipe's write end: one JSON object a line
constexpr int worker_spec_fd = 4;   // a sealed memory file: the JSON text of the case
constexpr int worker_board_fd = 5;  // the ProgressBoard

// /proc shows the memory file by this name. A worker under a profiler looks for it among its ancestors.
constexpr const char* spec_file_name = "assay-spec";

// Every descendant of a worker has this variable, by which they are found where the keeper has been killed.
constexpr const char* worker_tag_variable = "ASSAY_WORKER_TAG";
// In a worker: the process of the host that has started it. 0 elsewhere.
pid_t pid_of_host();

struct SpawnRequest {
  std::filesystem::path executable;
  std::vector<std::string> arguments;                             // argv[1] and on
  std::map<std::string, std::optional<std::string>> environment;  // set; nothing: unset; the rest is inherited
  std::filesystem::path log_file;                                 // appended to, made when missing
  std::string spec;
  int board_fd = -1;
  std::vector<int> processors;  // to which all its threads are bound; empty: it inherits the host's
  std::uint64_t log_limit_bytes = default_log_limit_bytes;  // of what this worker adds to the log
};

// How a process ended.
struct Exit {
  bool by_signal = false;
  int number = 0;                    // the exit code, or the signal; -1: another part of the host took the exit status
  std::uint64_t peak_rss_bytes = 0;  // the kernel's high-water mark, of the process alone
  // The processes that it had left running were ended with it: so many, and the first ones by name.
  std::uint64_t left_running = 0;
  std::vector<std::string> left_names;
};

class Process {
 public:
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) = delete;
  // Kills it and whatever it has started. Waits no longer than 5 s for a process that the kernel does not let die.
  ~Process();

  pid_t pid() const { return pid_; }
  // The keeper is its parent: everything that it has started is below that.
  pid_t keeper_pid() const { return keeper_pid_; }
  // Lets a keeper go on that somebody has stopped: it would never report the worker's end.
  void continue_keeper() const noexcept;
  int end_fd() const { return channel_.get(); }  // readable once the process has ended
  // "NAME=value", in the environment of the worker and of all that it starts.
  std::string tag_entry() const { return fmt::format("{}={}", worker_tag_variable, tag_); }
  int event_fd() const { return event_fd_.get(); }  // non-blocking
  std::uint64_t log_begin_offset() const { return log_->begin_offset(); }
  // The log lost so much to its limit; known once the process is reaped.
  std::uint64_t log_dropped_bytes() const { return log_->dropped_bytes(); }

  bool has_ended() const;  // does not reap
  // Its end has begun: the kernel is taking it down, which for one that holds much memory takes a while.
  bool is_exiting() const;
  void signal_group(int signal) const noexcept;  // no effect once reaped
  std::uint64_t rss_bytes() const;               // now; 0 once it has ended
  // Kills what is left of it and of what it has started, reaps, and completes the log. Nothing when the process is
  // still there after `patience`. At most once.
  std::optional<Exit> kill_and_reap(std::chrono::milliseconds patience);

 private:
  friend Process spawn(const SpawnRequest& request);
  Process(pid_t keeper_pid, std::string tag, Fd channel, std::unique_ptr<WorkerLog> log);
  void await_start();
  std::optional<Exit> reap(std::chrono::milliseconds patience);
  std::optional<Exit> reap_without_keeper(std::chrono::milliseconds patience);

  pid_t keeper_pid_ = -1;
  pid_t pid_ = -1;
  std::string tag_;
  Fd channel_;  // to the keeper
  Fd event_fd_;
  std::unique_ptr<WorkerLog> log_;
};

// Throws LaunchError, also when the executable cannot be run. Makes the host adopt what a keeper leaves that was killed
// (PR_SET_CHILD_SUBREAPER).
Process spawn(const SpawnRequest& request);

}  // namespace assay::host::launch
