// Runs a program with a deadline and takes what it says: the scheduler's, a profiler's.
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::host {

inline constexpr std::size_t most_answer_bytes = std::size_t{64} << 20;

struct CommandAnswer {
  int exit_code = 0;           // 127: there is no such program
  bool timed_out = false;      // it was killed
  bool said_too_much = false;  // likewise, with more than most_answer_bytes
  std::string out, err;

  bool is_good() const { return exit_code == 0 && !timed_out && !said_too_much; }
  // Returns what the program said on its standard error, in one line, for a message; or how it ended, if it said
  // nothing.
  std::string complaint() const;
};

// Found on PATH. The program sees the caller's environment without what would change its meaning: SBATCH_*, SQUEUE_*,
// SCANCEL_*, SINFO_* and, but for SLURM_CONF and SLURM_CONF_SERVER, SLURM_*; a submission from within a job would
// otherwise inherit that job's shape. `more` ("NAME=value") is added. Standard input is empty. What the program has
// started and left running is not waited for.
CommandAnswer run_command(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout,
                          const std::vector<std::string>& more = {});

}  // namespace assay::host
