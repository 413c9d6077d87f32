// Hears how far a case is, in the words of its stages. `part`: of setup or the verification; "" if none is reported.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace assay::host::run {

using StageProgress = std::function<void(const char* stage, std::int64_t step, std::int64_t total_steps,
                                         const std::string& phase, const std::string& part)>;

}  // namespace assay::host::run
