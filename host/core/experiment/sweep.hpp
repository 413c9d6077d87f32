// A sweep: axes of values, and the cases they expand to.
#pragma once
#include "experiment/experiment.hpp"
#include "experiment/model_files.hpp"
#include "experiment/vocabulary.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::experiment {

// One axis: a key with its values, or the keys of a [[sweep.zip]], which move together.
struct Axis {
  std::vector<std::string> keys;
  std::vector<std::vector<Value>> rows;  // each with one value per key
  bool zipped = false;                   // from a [[sweep.zip]], even if of one key
};

using Exclusion = std::vector<std::pair<std::string, Value>>;  // drops the cases that match all of it

struct SweepPlan {
  std::vector<Axis> axes;  // the product's in the file's order, then the zip groups; the last changes fastest
  std::vector<Exclusion> exclusions;
  Place exclude_place;  // of the last [[sweep.exclude]]

  bool sweeps(const std::string& key) const;
};

// Reads [sweep]; null: there is none. `fixed` are the keys of [workload.params] with their places. Axes in `set_keys`
// were set on the command line: an exclusion may name values that they no longer have.
SweepPlan read_sweep(const Node* sweep, const std::vector<TableMember>& fixed, const std::set<std::string>& set_keys,
                     const Vocabulary& vocabulary, Mistakes& mistakes);

// Every case of the plan, `base` with the axes' values over it; `index` counts the cases that are left after exclusion.
// What their files of models say is in them, or what is wrong with it in `files`.
std::vector<Case> expand(const SweepPlan& plan, const Case& base, const Vocabulary& vocabulary, ModelFiles& files);

// Keeps the cases that match all of `arguments` (common/filter.hpp). A value that no case has is a mistake. Places
// count on from `first_position`.
void filter_cases(std::vector<Case>& cases, const std::vector<std::string>& arguments, int first_position,
                  const Vocabulary& vocabulary, Mistakes& mistakes);

// Every case so often, each with its number; in `order` "turns" all cases stand once before any stands again.
std::vector<Case> repeated(const std::vector<Case>& cases, std::int64_t times, const std::string& order);

// A sweep above this many cases is taken for a slip.
inline constexpr std::uint64_t most_cases = 100'000;

}  // namespace assay::host::experiment
