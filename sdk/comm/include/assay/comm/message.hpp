// The buffers that a collective moves, and the bandwidths that its time amounts to, by the conventions of nccl-tests
// (plugins/all_reduce/README.md has the formulas).
#pragma once
#include <cstddef>
#include <cstdint>

namespace assay::comm {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send_receive };

// Up to here messages are small: Gloo here sends all of an all-reduce to every rank then, and shares of larger ones.
// The host, which knows no room of the sdk, has the same in host/analysis/forecast/wire.hpp.
inline constexpr std::size_t small_message_bytes = 16 * 1024;

// One rank's buffers, in elements. `larger` is the size that is asked for: both buffers of all_reduce, broadcast,
// all_to_all and send_receive, the one that reduce_scatter sends, and the one that all_gather receives. `part` is the
// share of one rank in it: reduce_scatter receives it, all_gather sends it, all_to_all sends one to each rank.
struct Message {
  std::int64_t larger = 0;
  std::int64_t part = 0;
  std::int64_t bytes = 0;  // size of `larger`
  std::int64_t count = 0;  // the argument of the call, which nccl-tests prints: `part` if it is set, else `larger`
};

// One of the two buffers is a rank's part of the other.
constexpr bool has_a_smaller_buffer(Collective c) {
  return c == Collective::reduce_scatter || c == Collective::all_gather;
}
constexpr bool has_parts(Collective c) { return has_a_smaller_buffer(c) || c == Collective::all_to_all; }
// What a rank sends has a part for each rank.
constexpr bool sends_parts(Collective c) { return c == Collective::reduce_scatter || c == Collective::all_to_all; }
constexpr bool reduces(Collective c) { return c == Collective::all_reduce || c == Collective::reduce_scatter; }
constexpr bool may_be_in_place(Collective c) { return c != Collective::all_to_all && c != Collective::send_receive; }

// `size_bytes` rounded down to whole elements, and to a multiple of the ranks where each has a part. Throws
// assay::Error(INVALID_ARGUMENT) when not one element is left.
Message plan_message(Collective collective, std::int64_t size_bytes, std::size_t element_bytes, std::int32_t ranks);

// GB/s (10^9 bytes) of the larger buffer in the time of the collective.
double algorithm_bandwidth_gbs(std::int64_t bytes, double milliseconds);

// Bus bandwidth over algorithm bandwidth: what crosses the slowest link of the best algorithm, in sizes of the larger
// buffer. 0 for one rank, but for broadcast and send_receive.
double bus_factor(Collective collective, std::int32_t ranks);

}  // namespace assay::comm
