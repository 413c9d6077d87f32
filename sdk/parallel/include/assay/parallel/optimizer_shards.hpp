// Decides which rank owns which elements of the parameter arena. This file knows only numbers: no tensors, no
// communication.
//
// A range is [begin, end) in elements of the arena. An arena that is shared out is padded to arena_multiple(), so that
// every part of every range is as large as the others and begins on a line of memory.
#pragma once
#include <assay/plugin/choices.hpp>
#include <assay/train/element_range.hpp>
#include <cstdint>
#include <vector>

namespace assay::parallel {

enum class StateSharing : std::int32_t { baseline, broadcast, zero1 };
inline constexpr auto state_sharings = choices<StateSharing>(
    {{"baseline", StateSharing::baseline}, {"broadcast", StateSharing::broadcast}, {"zero1", StateSharing::zero1}});

// Each rank's part of a bucket is a multiple of this many elements: 256 bytes of fp32, 128 of bf16.
inline constexpr std::int64_t part_elements = 64;
inline std::int64_t arena_multiple(StateSharing sharing, std::int32_t ranks) {
  return sharing == StateSharing::baseline ? part_elements : part_elements * ranks;
}

// The rank updates these ranges and keeps optimizer state for them; they are in ascending order.
//   baseline   the whole arena
//   broadcast  its part of the arena
//   zero1      its part of each bucket
std::vector<train::ElementRange> owned_ranges(StateSharing sharing, const std::vector<train::ElementRange>& buckets,
                                              std::int64_t arena_elements, std::int32_t rank, std::int32_t ranks);

}  // namespace assay::parallel
