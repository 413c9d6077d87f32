// One attempt of a job at a shard. Each attempt has its own folder, so that nothing that two attempts write can meet:
//
//   <shard>/attempts/0002/claim.json      which job, on which nodes; there from the folder's first moment
//                         journal.jsonl   cases begun and ended (journal.hpp)
//                         cases.jsonl     their records
//                         environment.json, logs/, and the files of the cases
//                         progress.json   the case at hand, now and then
//                         end.json        how the attempt ended; absent while it goes on, and when it was killed
//
// A process claims an attempt by renaming a prepared folder to the next number; only one can succeed, on a network file
// system too. Who takes a number must know that the attempt before it is over.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shard/shard_plan.hpp"

namespace assay::host::shard {

struct AttemptClaim {
  JobStart start;
  std::string host;  // of the process that leads
  std::int64_t pid = 0;
  std::vector<std::string> nodes;
  double began_s = 0;  // seconds since 1970
};

struct AttemptEnd {
  std::string verdict;  // "done", "more", ...: run/shard_run.hpp
  std::string reason;
  double ended_s = 0;
};

struct AttemptProgress {
  std::int64_t case_index = -1;
  std::string stage;
  std::int64_t step = 0, steps = 0;
  double at_s = 0;
};

struct Attempt {
  std::int64_t number = 0;
  std::filesystem::path folder;
  AttemptClaim claim;
  std::optional<AttemptEnd> end;
  std::optional<AttemptProgress> progress;
};

// All attempts, the first one first. A folder whose claim cannot be read has an empty one. Throws StorageError.
std::vector<Attempt> read_attempts(const std::filesystem::path& shard_folder);

// Their folders alone, which need no file to be read.
std::vector<std::filesystem::path> attempt_folders(const std::filesystem::path& shard_folder);

// Whether the process that holds an attempt without an end is known to be gone.
using IsOver = std::function<bool(const AttemptClaim& holder)>;

// The folder of the next attempt; nothing while another one goes on, with `holder` set to it. An earlier start of the
// same job is over: a scheduler ends a job before it starts it again. Throws StorageError.
struct Claimed {
  std::optional<std::filesystem::path> folder;
  std::int64_t number = 0;
  AttemptClaim holder;
};
Claimed claim_next_attempt(const std::filesystem::path& shard_folder, const AttemptClaim& claim, const IsOver& is_over);

// A later attempt has been taken: this one was thought to be gone, and must not begin another case.
bool is_superseded(const std::filesystem::path& shard_folder, std::int64_t number);

void write_end(const std::filesystem::path& attempt_folder, const AttemptEnd& end);
void write_progress(const std::filesystem::path& attempt_folder, const AttemptProgress& progress);

}  // namespace assay::host::shard
