#include "launch/worker_request.hpp"

namespace assay::host::launch {

const char* name_of(WorkerStatus status) {
  switch (status) {
    case WorkerStatus::finished: return "finished";
    case WorkerStatus::timeout: return "timeout";
    case WorkerStatus::crashed: return "crashed";
    case WorkerStatus::oom: return "oom";
    case WorkerStatus::interrupted: return "interrupted";
    case WorkerStatus::ended: return "ended";
  }
  return "unknown";
}

}  // namespace assay::host::launch
