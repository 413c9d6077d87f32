#include "scaling/outlook.hpp"

#include <algorithm>
#include <cmath>

namespace assay::host::scaling {
namespace {

// How many times longer a rank's work takes where ranks share processors.
double crowding(int ranks, const MeasuredStep& basis, const Assumptions& a) {
  if (!basis.ranks_at_full_speed) return 1;
  const int together = a.network ? std::min(ranks, a.network->ranks_per_machine) : ranks;
  return std::max(1.0, together / *basis.ranks_at_full_speed);
}

struct Message {
  double seconds = 0;
  Algorithm algorithm = Algorithm::ring;
};

// Beyond a machine a part of the steps crosses the network, and all bytes do, over all shares of a machine: of a ring
// through its ranks one edge leaves it, and each of several rings leaves by another share.
double seconds_across(const Wire& wire, const Network& network, double bytes, int ranks) {
  const double machines = std::ceil(static_cast<double>(ranks) / network.ranks_per_machine);
  const double steps = steps_of(wire.algorithm, Collective::all_reduce, ranks);
  const double crossing = steps_of(wire.algorithm, Collective::all_reduce, static_cast<int>(machines));
  const double per_byte = std::max(wire.seconds_per_byte, network.seconds_per_byte / network.ranks_per_machine);
  return (steps - crossing) * wire.latency_s + crossing * std::max(wire.latency_s, network.latency_s) +
         per_byte * volume_of(Collective::all_reduce, ranks) * bytes;
}

Message cheapest(double bytes, int ranks, const Assumptions& a) {
  Message best;
  bool is_first = true;
  for (const Wire& wire : a.wires) {
    const bool crosses = a.network && ranks > a.network->ranks_per_machine;
    const double seconds = crosses ? seconds_across(wire, *a.network, bytes, ranks)
                                   : seconds_of(wire, Collective::all_reduce, bytes, ranks);
    if (is_first || seconds < best.seconds) best = {seconds, wire.algorithm};
    is_first = false;
  }
  return best;
}

// A step without its communication, as it is told on the most ranks.
double compute_of(const MeasuredStep& step) {
  return step.silent_s ? *step.silent_s : std::max(0.0, step.step_s - step.exposed_s);
}

// Of collectives beside the backward each is ready when its share of it is done; the last one has nothing left to hide
// behind.
double exposed_of(const MeasuredStep& basis, double communication_s, double backward_s) {
  if (!basis.overlaps || basis.collectives < 1) return communication_s;
  const double last_s = communication_s / basis.collectives;
  return std::max(last_s, communication_s - backward_s * (1 - 1 / basis.collectives));
}

Outlook outlook(const MeasuredStep& basis, int ranks, const Assumptions& assumptions) {
  const auto message = [&](int n) {
    return cheapest(basis.collectives > 0 ? basis.bytes / basis.collectives : 0, n, assumptions);
  };
  const double crowd = crowding(ranks, basis, assumptions) / crowding(basis.ranks, basis, assumptions);
  Outlook o{.ranks = ranks, .compute_s = compute_of(basis) * crowd};
  if (ranks > 1) {
    // What collectives take longer in a step than alone is added, not multiplied: from two H200 to four it hardly
    // grows, though messages take half as long again.
    const double modelled_s = basis.collectives * message(basis.ranks).seconds;
    const double longer_s = basis.ranks > 1 ? std::max(0.0, basis.communication_s - modelled_s) : 0;
    const Message one = message(ranks);
    o.algorithm = one.algorithm;
    o.communication_s = (basis.collectives * one.seconds + longer_s) * crowd;
    o.exposed_s = exposed_of(basis, o.communication_s, basis.backward_s * crowd);

    const double lost_s = basis.silent_s ? std::max(0.0, basis.step_s - *basis.silent_s - basis.exposed_s) : 0;
    const double hidden_s = basis.communication_s - basis.exposed_s;
    o.slowed_s =
        basis.overlaps && hidden_s > 0 ? lost_s / hidden_s * (o.communication_s - o.exposed_s) : lost_s * crowd;
  }
  o.step_s = o.compute_s + o.exposed_s + o.slowed_s;
  o.items_per_s = basis.items / basis.ranks * ranks / o.step_s;
  return o;
}

}  // namespace

const MeasuredStep& basis_of(const StepFamily& family, const std::set<int>& from, int ranks) {
  const MeasuredStep* basis = nullptr;
  for (const MeasuredStep& step : family.steps)  // from the fewest ranks on
    if (from.contains(step.ranks) && (!basis || step.ranks <= ranks || (basis->ranks == 1 && ranks > 1))) basis = &step;
  return *basis;
}

std::vector<Outlook> outlooks(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                              const Assumptions& assumptions) {
  const MeasuredStep& fewest = basis_of(family, from, 1);
  const double alone_s = fewest.ranks == 1 ? fewest.step_s : outlook(fewest, 1, assumptions).step_s;
  std::vector<Outlook> all;
  for (const int n : ranks) {
    Outlook o = outlook(basis_of(family, from, n), n, assumptions);
    o.efficiency = alone_s / o.step_s;
    for (const MeasuredStep& known : family.steps)
      if (known.ranks == n) o.measured_s = known.step_s, o.is_basis = from.contains(n);
    all.push_back(o);
  }
  return all;
}

}  // namespace assay::host::scaling
