// The words for what became of a worker.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/board.hpp"

namespace assay::host::launch {

// "stage measure, phase forward, step 3"; outside of warm-up and measure the step, and an absent phase, are left out.
std::string describe_position(const BoardView& where, const std::vector<std::string>& phase_names);
// The name of the board's phase, "" outside every phase.
std::string phase_name(const BoardView& where, const std::vector<std::string>& phase_names);
// "parameters 491 MiB, activations 300 MiB", the largest first; "nothing reported" when all are zero.
std::string describe_memory(const std::array<std::uint64_t, memory_kind_count>& bytes_by_kind);
// "SIGSEGV (invalid memory access)"
std::string describe_signal(int signal);
// "491 MiB", "1.03 GiB", "12 bytes"
std::string bytes_text(std::uint64_t bytes);
// "2.0 s", "10 min"
std::string duration_text(std::chrono::milliseconds duration);

}  // namespace assay::host::launch
