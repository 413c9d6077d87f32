// What the workloads have said of the mutants, as a table and as lists.
#pragma once
#include <string>
#include <vector>

#include "campaign.hpp"
#include "expectations.hpp"

namespace assay::mutants {

enum class Verdict { killed, explained, known_to_survive, survived, not_reached, failed };

struct Finding {
  const Trial* trial;
  Verdict verdict;
  const Exception* exception = nullptr;  // that lets it survive
  const Exception* refuted = nullptr;    // an explanation, where it was found all the same
};

Finding judge(const Trial& trial);
// A row for each mutant, a column for each workload; below, by name, whatever was not killed.
std::string table_of(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases);

}  // namespace assay::mutants
