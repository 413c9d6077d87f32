// The mutants of operations and collectives, and behind them those of sources, as the campaign counts them.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace assay::mutants {

struct AnyMutant {
  std::string_view name, what;
  std::string_view mutant_class;  // "operation", or that of a source mutant
  std::string_view tried = "";    // of a source mutant: the names of the cases that try it, between blanks
  bool is_of_sources() const { return mutant_class != "operation"; }
};

const std::vector<AnyMutant>& all_mutants();

}  // namespace assay::mutants
