// Matches the cases of one side with those of another.
#pragma once
#include "compare/inputs.hpp"

#include <set>
#include <string>
#include <vector>

namespace assay::host::compare {

// The word for it in MatchRules::across: cases of two workloads are the same where their inputs are.
inline constexpr const char* across_workloads = "workload";

struct MatchRules {
  std::set<std::string> across;  // inputs that may differ
  bool any_ranks = false;        // so may the number of ranks
};

struct Match {
  enum class Kind { found, refused, missing } kind = Kind::missing;
  const SideCase* other = nullptr;  // where found, and where one was refused
  std::string reason;               // of a refusal
  // "key=value" of inputs that only the baseline's case says, or only the other one
  std::vector<std::string> only_baseline, only_other;
};

struct Matches {
  std::vector<Match> of_baseline;           // one per case of the baseline
  std::vector<const SideCase*> only_other;  // no case of the baseline is theirs, nor was one refused for them
};

// Two cases are the same when they have the same workload (unless across_workloads) and agree in every input that both
// know. An input that varies within a side distinguishes its cases: cases that differ there are other cases. Where they
// differ elsewhere, the pair is refused with the reason, since somebody who compares two runs expects them to be of one
// thing.
Matches match_cases(const std::vector<SideCase>& baseline, const std::vector<SideCase>& other, const MatchRules& rules);

}  // namespace assay::host::compare
