// Which device a case would run on, asked without keeping it open.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace assay::host {

// `wanted`: "cpu", "cuda", or "auto" (cuda where its backend finds a device, else cpu; `note` says why not cuda).
// {"status": "ok", "device": {kind, ordinal, name, ...}, "count": of that kind, "note": ""} or {"status": "unsupported"
// or "failed", "reason"}.
nlohmann::ordered_json probe_device(const std::string& wanted);

}  // namespace assay::host
