// `assay time -- CMD...`: a program timed as a whole, without an experiment file.
#pragma once
#include "console/run_command.hpp"

namespace assay::host::console {

struct TimeRequest {
  RunRequest run;                  // its experiments and text are made of the rest
  std::vector<std::string> words;  // the program and its arguments; a single text with blanks is parted at them
  std::int64_t runs = 10, warmup = 1;
};

// The experiment of the workload `command` that times the program: {name} stands for a parameter where --set gives one
// of this name, and for itself elsewhere.
std::string text_of_timed(const TimeRequest& request);

// Returns the exit code. Throws UsageError.
int time_program(TimeRequest request);

}  // namespace assay::host::console
