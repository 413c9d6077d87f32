// Which device a case would run on, asked without keeping it open.
#pragma once
#include <string>

#include "worker/answer.hpp"

namespace assay::host::worker {

// `kind`: "cpu", "cuda". The answer's status is ok, unsupported or failed. Once in a process: what another backend has
// loaded stays, and would stand among the libraries of this one.
FoundDevice probe_device(const std::string& kind);

}  // namespace assay::host::worker
