// The tables of an experiment file other than [sweep]: from the tree to the values that all cases start from.
#pragma once
#include "experiment/experiment.hpp"
#include "experiment/vocabulary.hpp"

namespace assay::host::experiment {

struct Draft {
  Experiment experiment;  // without cases
  Case base;              // every parameter and setting as it is where no axis says otherwise
};

// Reads all that stands outside [sweep] into `draft`. Without a schema, what needs one is left unjudged.
void read_sections(const Node& root, const Vocabulary& vocabulary, Draft& draft, Mistakes& mistakes);

}  // namespace assay::host::experiment
