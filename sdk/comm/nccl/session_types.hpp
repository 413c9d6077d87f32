// What a session reports, and what it receives.
#pragma once
#include <assay/plugin.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace assay::comm::nccl {

struct Failure {
  assay_status status = ASSAY_COMM_ERROR;
  std::string text;
};

struct Timing {
  std::chrono::milliseconds interval{50};  // between two looks of the caretaker
  std::chrono::milliseconds leave{1000};   // in close(), for what is in flight
  std::chrono::milliseconds finish{5000};  // in close(), for NCCL to send what others still wait for
  std::chrono::milliseconds abort{2000};   // for NCCL to abort
};

// The collectives of a graph.
struct CapturedCollectives {
  std::uint64_t collectives = 0;
  std::uint64_t bytes = 0;
  bool alone = true;  // on the compute stream: whoever captures them there captures nothing else
};

// Tickets of captured collectives have it; the rest is their number within the capture, from 1 on.
inline constexpr std::uint64_t captured_ticket = std::uint64_t{1} << 63;

}  // namespace assay::comm::nccl
