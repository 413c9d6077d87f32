#include "forecast/wires.hpp"

#include <algorithm>

namespace assay::host::forecast {

Wires wires_of(const std::vector<ObservedCase>& cases, const std::vector<StepFamily>& families,
               const std::set<int>& allowed) {
  // Collectives that ran alone show best what one costs alone.
  std::map<Link, std::vector<WirePoint>> of_link;
  for (const auto& points : {wire_points(cases), wire_points(families)}) {
    std::map<Link, std::vector<WirePoint>> these;
    for (const WirePoint& p : points)
      if (p.ranks > 1 && (allowed.empty() || allowed.contains(p.ranks))) these[p.link].push_back(p);
    of_link.merge(these);
  }
  Wires wires;
  for (const auto& [link, points] : of_link) {
    std::vector<Wire> found;
    for (const Algorithm algorithm : link.algorithms())
      if (const auto wire = fitted(algorithm, points)) found.push_back(*wire);
    // A library whose times are no tree's has none.
    for (const Wire& wire : found)
      if (std::none_of(found.begin(), found.end(), [&](const Wire& other) { return is_refuted(wire, other); }))
        wires[link].push_back(wire);
  }
  return wires;
}

const Wires::value_type* nearest(const Wires& wires, const Link& link) {
  const Wires::value_type* best = nullptr;
  int best_score = -1;
  for (const auto& one : wires) {
    const Link& other = one.first;
    if (other.device != link.device || other.library != link.library || other.between_machines != link.between_machines)
      continue;
    const int score = (other.memory == link.memory ? 2 : 0) + (other.in_graph == link.in_graph ? 1 : 0);
    if (score > best_score) best = &one, best_score = score;
  }
  return best;
}

}  // namespace assay::host::forecast
