// Carries out one shard of a batch: its cases one after the other, each with an intent before it and a record after it.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "experiment/experiment.hpp"
#include "run/run_listener.hpp"
#include "run/target.hpp"
#include "shard/attempt.hpp"
#include "shard/shard_plan.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::run {

struct ShardOptions {
  std::filesystem::path folder;
  shard::ShardPlan plan;
  shard::JobStart start;
  std::vector<std::string> nodes;  // of the job, as its environment says
  std::string experiment_hash;     // of the experiment as it is now
  // No case is begun that would end later by its budget.
  std::optional<std::chrono::system_clock::time_point> until;
  std::optional<wireup::LaunchedRank> launched;  // with other processes, which this one leads
  shard::IsOver is_over;                         // what the scheduler knows of the job of an earlier attempt
};

// How an attempt ended. The batch script reads the word in the verdict file.
enum class Verdict {
  done,        // every case has a record or is in quarantine
  more,        // cases are left: the job is to be started again
  stopped,     // asked to end (SIGTERM, SIGINT): the scheduler decides
  busy,        // another job is at this shard
  changed,     // the experiment or the plugin is not what was submitted
  superseded,  // another attempt has begun in the belief that this one is gone
  canary,      // the canary's case is not ok: nothing else of the batch is to start
  failed,      // the disk, the plugin or the other ranks: starting again does not help
};
const char* name_of(Verdict verdict);
// Leaves the verdict on a shard that cannot even be begun. Throws StorageError.
void write_verdict(const std::filesystem::path& shard_folder, const shard::JobStart& start, Verdict verdict);
inline constexpr int exit_busy = 73;  // EX_CANTCREAT of sysexits.h

// Writes the verdict, and returns the exit code: 0 for done and more, 73 for busy, 130 when stopped, else 1. What went
// wrong is reported to the listener.
int run_shard(const experiment::Experiment& experiment, const RunTarget& target, const ShardOptions& options,
              RunListener& listener);

}  // namespace assay::host::run
