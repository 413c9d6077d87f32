#include "forecast/step_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::host::forecast {
namespace {

struct Message {
  double seconds = 0;
  Algorithm algorithm = Algorithm::ring;
};

// Beyond a machine a part of the steps crosses the network, and all bytes do, over all shares of a machine: of a ring
// through its ranks one edge leaves it, and each of several rings leaves by another share.
double seconds_across(const Wire& wire, const Network& network, double bytes, int ranks) {
  const double machines = std::ceil(static_cast<double>(ranks) / network.ranks_per_machine);
  const Demand all = demand_of(wire.algorithm, Collective::all_reduce, bytes, ranks);
  const Demand between = demand_of(wire.algorithm, Collective::all_reduce, bytes, static_cast<int>(machines));
  const double per_byte = std::max(wire.seconds_per_byte, network.seconds_per_byte / network.ranks_per_machine);
  return (all.steps - between.steps) * wire.latency_s + between.steps * std::max(wire.latency_s, network.latency_s) +
         per_byte * all.bytes;
}

// Directly to every other rank: each step waits for those on other machines, and what goes there goes over the rank's
// own share.
double seconds_directly_across(const Wire& wire, const Network& network, double bytes, int ranks) {
  const Demand d = demand_of(wire.algorithm, Collective::all_reduce, bytes, ranks);
  const double leaving = static_cast<double>(ranks - network.ranks_per_machine) / (ranks - 1);
  return d.steps * std::max(wire.latency_s, network.latency_s) + d.messages * wire.message_s +
         d.bytes * std::max(wire.seconds_per_byte, leaving * network.seconds_per_byte);
}

// Without a network for ranks that were measured: what they had is in the measurement.
Message cheapest(double bytes, int ranks, const Assumptions& a, bool is_measured) {
  Message best;
  bool is_first = true;
  for (const Wire& wire : a.wires) {
    const bool crosses = !is_measured && a.network && ranks > a.network->ranks_per_machine;
    const auto across = wire.algorithm == Algorithm::direct ? seconds_directly_across : seconds_across;
    const double seconds =
        crosses ? across(wire, *a.network, bytes, ranks) : seconds_of(wire, Collective::all_reduce, bytes, ranks);
    if (is_first || seconds < best.seconds) best = {seconds, wire.algorithm};
    is_first = false;
  }
  return best;
}

// All of a step, one after the other, small ones and large ones as they are; the algorithm of the large ones.
Message all_messages(const MeasuredStep& basis, int ranks, const Assumptions& a, bool is_measured) {
  Message all;
  const auto add = [&](double count, double bytes) {
    if (count <= 0) return;
    const Message one = cheapest(bytes / count, ranks, a, is_measured);
    all = {all.seconds + count * one.seconds, one.algorithm};
  };
  add(basis.small_collectives, basis.small_bytes);
  add(basis.collectives - basis.small_collectives, basis.bytes - basis.small_bytes);
  return all;
}

// A step without its communication, as measured on the most ranks.
double compute_of(const MeasuredStep& step) {
  return step.silent_s ? *step.silent_s : std::max(0.0, step.step_s - step.exposed_s);
}

// Each collective beside the backward is ready when its share of it is done; the last one has nothing left to hide
// behind.
double exposed_of(const MeasuredStep& basis, double communication_s, double backward_s) {
  if (!basis.overlaps || basis.collectives < 1) return communication_s;
  const double last_s = communication_s / basis.collectives;
  return std::max(last_s, communication_s - backward_s * (1 - 1 / basis.collectives));
}

// What a step of the basis' kind takes on so many ranks, by the model alone.
StepForecast modelled(const MeasuredStep& basis, int ranks, const Assumptions& assumptions, bool is_measured) {
  const double of_basis = crowding(ranks_of_machine(basis, basis.ranks), basis.ranks_at_full_speed);
  const int together = assumptions.network && !is_measured ? std::min(ranks, assumptions.network->ranks_per_machine)
                                                           : ranks_of_machine(basis, ranks);
  const double crowd = crowding(together, basis.ranks_at_full_speed);
  StepForecast o{.ranks = ranks, .compute_s = compute_of(basis) * crowd / of_basis};
  if (ranks < 2) return o;
  // What collectives take longer in a step than alone is added, not multiplied: from two H200 to four it hardly grows,
  // though messages take half as long again.
  const double alone_s = all_messages(basis, basis.ranks, assumptions, true).seconds;
  const double longer_s = basis.ranks > 1 ? std::max(0.0, basis.communication_s / of_basis - alone_s) : 0;
  const Message all = all_messages(basis, ranks, assumptions, is_measured);
  o.algorithm = all.algorithm;
  o.communication_s = (all.seconds + longer_s) * crowd;
  o.exposed_s = exposed_of(basis, o.communication_s, basis.backward_s * crowd / of_basis);
  return o;
}

// The rest of the measured step, which the model does not know: of collectives that are hidden it grows with what is
// hidden, or else with what ranks compute.
StepForecast forecast(const MeasuredStep& basis, int ranks, const Assumptions& assumptions) {
  const StepForecast then = modelled(basis, basis.ranks, assumptions, true);
  StepForecast o = modelled(basis, ranks, assumptions, ranks == basis.ranks && !assumptions.network);
  const double rest_s = basis.step_s - then.compute_s - then.exposed_s;
  const double hidden_then_s = then.communication_s - then.exposed_s, hidden_s = o.communication_s - o.exposed_s;
  if (ranks > 1)
    o.slowed_s = basis.overlaps && hidden_then_s > 0 ? rest_s * hidden_s / hidden_then_s
                                                     : rest_s * (then.compute_s > 0 ? o.compute_s / then.compute_s : 1);
  else if (basis.ranks == 1)
    o.slowed_s = rest_s;
  // Where ranks were faster than the model, that gain must not be carried on beyond all the waiting that there is.
  if (ranks != basis.ranks) o.slowed_s = std::max(o.slowed_s, -o.exposed_s);
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

std::string contradiction_in(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                             const Assumptions& assumptions) {
  constexpr double ms_of_a_s = 1e3;
  // Models are off by a tenth, and collectives in a step by some more; from here on it is another machine or a mistake.
  constexpr double most_beyond_measured = 1.5;
  std::set<const MeasuredStep*> bases{&basis_of(family, from, 1)};
  for (const int n : ranks) bases.insert(&basis_of(family, from, n));
  for (const MeasuredStep* basis : bases) {
    const StepForecast then = modelled(*basis, basis->ranks, assumptions, true);
    const std::string on = fmt::format("on {} rank{}", basis->ranks, basis->ranks == 1 ? "" : "s");
    if (!(then.compute_s > 0))
      return fmt::format("its records {} say that a step takes {:.4g} ms and {}, which leaves no time to compute", on,
                         basis->step_s * ms_of_a_s,
                         basis->silent_s
                             ? "0 ms without its communication"
                             : fmt::format("waits {:.4g} ms for collectives", basis->exposed_s * ms_of_a_s));
    if (then.compute_s + then.exposed_s <= most_beyond_measured * basis->step_s) continue;
    const double alone_s = all_messages(*basis, basis->ranks, assumptions, true).seconds;
    const std::string of_collectives =
        basis->ranks < 2
            ? ""
            : fmt::format(" and {:.4g} ms of waiting for {:g} collectives ({})", then.exposed_s * ms_of_a_s,
                          basis->collectives,
                          alone_s > basis->communication_s ? "as messages cost on its link" : "as its own records say");
    return fmt::format(
        "the records contradict each other {}: a step took {:.4g} ms, but is said to have {:.4g} ms of computing "
        "({}){}",
        on, basis->step_s * ms_of_a_s, then.compute_s * ms_of_a_s,
        basis->silent_s ? "its step without communication" : "what it did not wait", of_collectives);
  }
  return "";
}

std::vector<StepForecast> forecasts(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                                    const Assumptions& assumptions) {
  const MeasuredStep& fewest = basis_of(family, from, 1);
  const double alone_s = fewest.ranks == 1 ? fewest.step_s : forecast(fewest, 1, assumptions).step_s;
  std::vector<StepForecast> all;
  for (const int n : ranks) {
    StepForecast o = forecast(basis_of(family, from, n), n, assumptions);
    o.efficiency = alone_s / o.step_s;
    for (const MeasuredStep& known : family.steps)
      if (known.ranks == n) o.measured_s = known.step_s, o.is_basis = from.contains(n);
    all.push_back(o);
  }
  return all;
}

}  // namespace assay::host::forecast
