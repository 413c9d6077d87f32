#include "source_switch.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

#include "mutants/counters.hpp"
#include "mutants/mutants.hpp"
#include "source_mutants.hpp"

namespace {

using assay::mutants::source_mutants;

const std::unordered_map<std::string_view, std::size_t>& places() {
  static const auto all = [] {
    std::unordered_map<std::string_view, std::size_t> map;
    for (std::size_t i = 0; i < source_mutants.size(); ++i) map[source_mutants[i].name] = i;
    return map;
  }();
  return all;
}

// Their counters lie behind those of operations and collectives.
const assay::mutants::Counters& counters() {
  static const assay::mutants::Counters instance(assay::mutants::mutants.size(), source_mutants.size());
  return instance;
}

}  // namespace

namespace assay_mutant {

bool on(const char* name) {
  const std::string_view living = assay::mutants::living_mutant();
  if (!living.empty() && living != name) return false;
  const auto found = places().find(name);
  if (found == places().end()) assay::mutants::give_up(std::string("there is no mutant '") + name + "'");
  counters().count(found->second);
  return !living.empty();
}

}  // namespace assay_mutant
