// The exit codes of `assay`.
#pragma once

namespace assay::host {

// 0: every case is ok, or its status is allowed. 1: a case failed. 2: a wrong command line or experiment. 130:
// interrupted.
enum ExitCode : int { exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_interrupted = 130 };

}  // namespace assay::host
