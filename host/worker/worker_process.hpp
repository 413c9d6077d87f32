// The worker process: what `assay` does when a host has started it with a spec.
#pragma once

namespace assay::host {

// Reads the spec from the channel, runs it, sends one event {"event": "result", "record": {...}} (a case) or {"event":
// "result", "probe": {...}} (the answer of probe_device()), and returns the process's exit code.
int worker_main();

}  // namespace assay::host
