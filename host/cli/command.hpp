// The subcommands of `assay`. Each gets the arguments after its name and returns the process's exit code.
#pragma once
#include <string>
#include <vector>

namespace assay::host {

// 0: every case is ok, or its status is allowed. 1: a case failed. 2: a wrong command line or experiment. 130:
// interrupted.
enum ExitCode : int { exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_interrupted = 130 };

using Arguments = std::vector<std::string>;

int run_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int describe_command(const Arguments& arguments);
int new_command(const Arguments& arguments);

}  // namespace assay::host
