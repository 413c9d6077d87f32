#include "all_mutants.hpp"

#include "mutants.hpp"
#include "source_mutants.hpp"

namespace assay::mutants {

const std::vector<AnyMutant>& all_mutants() {
  static const auto all = [] {
    std::vector<AnyMutant> list;
    for (const Mutant& m : mutants) list.push_back({m.name, m.what, "operation"});
    for (const SourceMutant& m : source_mutants) list.push_back({m.name, m.what, m.mutant_class, m.tried});
    return list;
  }();
  return all;
}

}  // namespace assay::mutants
