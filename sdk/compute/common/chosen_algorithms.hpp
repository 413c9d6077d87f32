// Reports to the host what libraries have chosen for the operations of this process (assay.algorithms/1).
#pragma once
#include <string>

#include "status_guard.hpp"

namespace assay::compute {

// The extension's table when `id` names it, else null.
const void* algorithms_extension(const char* id, StatusGuard guard) noexcept;

// `made_for`: operation and shape. `algorithm` has no measured time in it, so that the same choice is the same text in
// every process. Called where a plan is made, and never for each launch. Any thread.
void note_algorithm(const std::string& made_for, const std::string& algorithm);

// For a device that is opened: what was chosen before belongs to another case.
void forget_algorithms() noexcept;

}  // namespace assay::compute
