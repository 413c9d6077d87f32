// The worker process: what `assay` does when a host has started it with a spec.
#pragma once

namespace assay::host::worker {

// Reads the spec from the channel, runs it, sends one answer (worker/answer.hpp), and returns the process's exit code.
int worker_main();

}  // namespace assay::host::worker
