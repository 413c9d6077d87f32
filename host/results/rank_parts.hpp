// What merging the parts of several ranks does the same way for every case: names, maxima, verification, notes.
#pragma once
#include "results/merge_ranks.hpp"

#include <string>
#include <utility>
#include <vector>

namespace assay::host {

// The value under `key`, or null.
const Record& value_at(const Record& json, const std::string& key);

// The keys that the parts have in `group`, in the first part's order, then those of the later ones.
std::vector<std::string> names_in(const std::vector<const RankPart*>& ranks, const char* group);

// The largest of each number below `group`, over the ranks; null when no part has the group. Moments of memory meet by
// their names, those that came several times in their order.
Record largest_of(const std::vector<const RankPart*>& ranks, const char* group);

// The verification of the first rank with a wrong result, or else of the first that did not check, with the rank named;
// or else of the first rank. Null when no rank came so far.
Record merged_verify(const std::vector<const RankPart*>& ranks);

// "rank 1 on n1: " before `text`, unless it begins with the rank already.
std::string with_rank(const RankPart& rank, const std::string& text);

// Ranks whose devices differ in name, or are the same GPU.
std::vector<std::string> device_notes(const std::vector<const RankPart*>& ranks);

// The notes of all ranks: those of the first as they are, and what only others say with their numbers before it.
class RankNotes {
 public:
  void add(int rank, const std::string& text);
  Record texts(int first_rank) const;

 private:
  std::vector<std::pair<std::string, std::vector<int>>> notes_;  // a text and the ranks that say it
};

}  // namespace assay::host
