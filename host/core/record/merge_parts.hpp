// The parts of merging several ranks' results that every case shares: maxima, verification, notes.
#pragma once
#include "record/merge.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::record {

// `into` becomes the larger of both, where both are known.
template <class T>
void keep_larger(std::optional<T>& into, const std::optional<T>& other) {
  if (other && (!into || *other > *into)) into = other;
}
// Name by name; what only `other` has is appended.
void keep_larger(Named<double>& into, const Named<double>& other);
void keep_larger(std::optional<Named<double>>& into, const std::optional<Named<double>>& other);

// The largest of each number over the ranks; nothing if no rank reports any. Moments of memory meet by their names,
// those that came several times in their order.
std::optional<Memory> largest_memory(const std::vector<const RankPart*>& ranks);
std::optional<ProcessorShares> largest_contention(const std::vector<const RankPart*>& ranks);
WallTimes largest_wall_times(const std::vector<const RankPart*>& ranks);

// The verification of the first rank with a wrong result, or else of the first that did not check, with the rank named;
// or else of the first rank. Nothing when no rank came so far.
std::optional<VerificationResult> merged_verification(const std::vector<const RankPart*>& ranks);

// "rank 1 on n1: " before `text`, unless it begins with the rank already.
std::string with_rank(const RankPart& rank, const std::string& text);

// Distinguishes the devices of a host: the part's device_id, or else the ordinal.
std::string device_id_of(const RankPart& rank);

// Ranks whose devices differ in name, or are the same GPU.
std::vector<std::string> device_notes(const std::vector<const RankPart*>& ranks);

// Ranks that have loaded other libraries, or chosen other algorithms, than the first, whose ones the record has.
std::vector<std::string> provenance_notes(const std::vector<const RankPart*>& ranks);

// The notes of all ranks: those of the first as they are, and what only others say with their numbers before it.
class RankNotes {
 public:
  void add(std::int32_t rank, const std::string& text);
  std::vector<std::string> texts(std::int32_t first_rank) const;

 private:
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> notes_;  // a text and the ranks that say it
};

}  // namespace assay::host::record
