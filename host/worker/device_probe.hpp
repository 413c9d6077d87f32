// Which device a case would run on, asked without keeping it open.
#pragma once
#include <string>

#include "worker/answer.hpp"

namespace assay::host::worker {

// `wanted`: "cpu", "cuda", or "auto" (cuda where its backend finds a device, else cpu; `note` says why not cuda). The
// answer's status is ok, unsupported or failed.
FoundDevice probe_device(const std::string& wanted);

}  // namespace assay::host::worker
