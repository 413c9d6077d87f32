// A duration in words.
#pragma once
#include <chrono>
#include <string>

namespace assay::host::wireup {

// "5 s", "0.25 s"
std::string seconds_text(std::chrono::milliseconds duration);

}  // namespace assay::host::wireup
