#include "switchboard.hpp"

#include "counters.hpp"

namespace assay::mutants {
namespace {

constexpr std::size_t none = mutants.size();
constexpr std::size_t of_sources = none + 1;  // it lives in a plugin

class Switchboard {
 public:
  bool lives(std::size_t mutant) const { return alive_ == mutant; }
  bool reached(std::size_t mutant) const {
    if (alive_ != none && alive_ != mutant) return false;
    counters_.count(mutant);
    return alive_ == mutant;
  }

 private:
  static std::size_t named() {
    const std::string_view name = living_mutant();
    if (name.empty()) return none;
    if (is_of_sources(name)) return of_sources;
    for (std::size_t i = 0; i < mutants.size(); ++i)
      if (mutants[i].name == name) return i;
    give_up("there is no mutant '" + std::string(name) + "'");
  }

  std::size_t alive_ = named();
  Counters counters_{0, mutants.size()};
};

const Switchboard& switchboard() {
  static const Switchboard instance;
  return instance;
}

}  // namespace

bool breaks(MutantId mutant) { return switchboard().reached(mutant.index()); }
bool lives(MutantId mutant) { return switchboard().lives(mutant.index()); }

}  // namespace assay::mutants
