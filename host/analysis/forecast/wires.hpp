// What messages cost on each link that records show.
#pragma once
#include "forecast/measured_steps.hpp"
#include "forecast/wire.hpp"

#include <map>
#include <set>
#include <vector>

namespace assay::host::forecast {

using Wires = std::map<Link, std::vector<Wire>>;

// From collectives that ran alone, and on links without these from steps that wait for theirs. `allowed`: numbers of
// ranks; empty: all. Algorithms that the times refute are left out.
Wires wires_of(const std::vector<ObservedCase>& cases, const std::vector<StepFamily>& families,
               const std::set<int>& allowed);

// The link's own, or those of the same library and place nearest to it: with the same memory, or else in a graph like
// it, or any. nullptr: there are none.
const Wires::value_type* nearest(const Wires& wires, const Link& link);

}  // namespace assay::host::forecast
