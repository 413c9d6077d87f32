// How many trials came to what: by workload, and by class of mutant.
#pragma once
#include <string>
#include <vector>

#include "table.hpp"

namespace assay::mutants {

struct Counts {
  int killed = 0, explained = 0, survived = 0, other = 0;
  void add(Verdict v);
  int all() const { return killed + explained + survived + other; }
  std::string text() const;  // "3 killed, 1 SURVIVED"
};

// In the order in which their first cases come.
std::vector<std::string> workloads_of(const std::vector<TriedCase>& cases);

// How many trials of each workload came to what, and how many mutants of each class each workload killed, of how many
// that it was tried with: the tables in README.md.
std::string summary_of(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases);
std::string summary_of_classes(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases);

}  // namespace assay::mutants
