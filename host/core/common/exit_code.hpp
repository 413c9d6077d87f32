// The exit codes of `assay`.
#pragma once

namespace assay::host {

// 0: every case is ok, or its status is allowed. 1: a case failed. 2: a wrong command line or experiment. 130:
// interrupted. 75 (EX_TEMPFAIL of sysexits.h): this node fails the site's health check, and the script of a batch looks
// for another one.
enum ExitCode : int { exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_unhealthy = 75, exit_interrupted = 130 };

}  // namespace assay::host
