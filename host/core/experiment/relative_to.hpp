// [output] relative_to: which case the others are compared with in the tables.
#pragma once
#include "experiment/sweep.hpp"

#include <set>
#include <string>

namespace assay::host::experiment {

// Reads the table of axes and their baseline's values into `output`. Keys that move with one of them in a
// [[sweep.zip]] are added with the value that they have there. An axis that was changed on the command line (it is in
// `set_keys`) may lack the file's baseline: then there is none, and the columns that need one are left out. `sweep` is
// the tree of [sweep], or null: an axis that is written there but not in the plan is a separate mistake.
void read_relative_to(const Node& table, const Node* sweep, const SweepPlan& plan,
                      const std::set<std::string>& set_keys, const Vocabulary& vocabulary, OutputSettings& output,
                      Mistakes& mistakes);

}  // namespace assay::host::experiment
