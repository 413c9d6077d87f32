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
double seconds_across(const Wire& wire, const Network& network, Collective collective, double bytes, int ranks) {
  const double machines = std::ceil(static_cast<double>(ranks) / network.ranks_per_machine);
  const Demand all = demand_of(wire.algorithm, collective, bytes, ranks);
  const Demand between = demand_of(wire.algorithm, collective, bytes, static_cast<int>(machines));
  const double per_byte = std::max(wire.seconds_per_byte, network.seconds_per_byte / network.ranks_per_machine);
  return wire.message_s * all.messages + (all.steps - between.steps) * wire.latency_s +
         between.steps * std::max(wire.latency_s, network.latency_s) + per_byte * all.bytes;
}

// Directly to every other rank: each step waits for those on other machines, and what goes there goes over the rank's
// own share.
double seconds_directly_across(const Wire& wire, const Network& network, Collective collective, double bytes,
                               int ranks) {
  const Demand d = demand_of(wire.algorithm, collective, bytes, ranks);
  const double leaving = static_cast<double>(ranks - network.ranks_per_machine) / (ranks - 1);
  return d.steps * std::max(wire.latency_s, network.latency_s) + d.messages * wire.message_s +
         d.bytes * std::max(wire.seconds_per_byte, leaving * network.seconds_per_byte);
}

// Without a network for ranks that were measured: what they had is in the measurement.
Message cheapest(const Messages& messages, double factor, int ranks, const Assumptions& a, bool is_measured) {
  const double bytes = factor * messages.bytes / messages.count;
  Message best;
  bool is_first = true;
  for (const Wire& wire : a.wires) {
    const bool crosses = !is_measured && a.network && ranks > a.network->ranks_per_machine;
    const auto across = wire.algorithm == Algorithm::direct ? seconds_directly_across : seconds_across;
    const double seconds = crosses ? across(wire, *a.network, messages.collective, bytes, ranks)
                                   : seconds_of(wire, messages.collective, bytes, ranks);
    if (is_first || seconds < best.seconds) best = {seconds, wire.algorithm};
    is_first = false;
  }
  return best;
}

// All of an exchange, one after the other, each kind as it is; the algorithm of the last kind.
Message all_messages(const Exchange& exchange, double factor, int ranks, const Assumptions& a, bool is_measured) {
  Message all;
  for (const Messages& m : exchange.messages) {
    if (m.count <= 0) continue;
    const Message one = cheapest(m, factor, ranks, a, is_measured);
    all = {all.seconds + m.count * one.seconds, one.algorithm};
  }
  return all;
}

// Each collective beside the computation is ready when its share of it is done; the last ones have nothing left to hide
// behind.
double exposed_of(const Exchange& exchange, double communication_s, double beside_s) {
  const double count = exchange.count();
  if (!exchange.overlaps || count < 1) return communication_s;
  const double bare = std::min(1.0, exchange.unhidden / count);
  return std::max(bare * communication_s, communication_s - beside_s * (1 - bare));
}

// A case to be forecast: the measured step it comes from, and how its work changes.
struct Basis {
  const MeasuredStep& step;
  const ComputeScaling& scaling;
  const Assumptions& assumptions;

  double imbalance(int n) const { return step.experts ? imbalance_on(n, step.experts->imbalance, step.ranks) : 1.0; }
  // Of a rank's work, without others on its processors.
  double work(int n) const {
    const double share = step.experts ? step.experts->share_of_compute : 0;
    const double of_stages = step.pipeline ? stage_imbalance_on(n, *step.pipeline) : 1.0;
    return scaling.of(n) * (1 + share * (imbalance(n) - 1)) * of_stages;
  }
  double crowd(int n, bool is_measured) const {
    const auto& network = assumptions.network;
    const int together = network && !is_measured ? std::min(n, network->ranks_per_machine) : ranks_of_machine(step, n);
    return crowding(together, step.ranks_at_full_speed);
  }
};

// What a step of the basis' kind takes on so many ranks, by the model alone.
StepForecast modelled(const Basis& basis, int ranks, bool is_measured) {
  const MeasuredStep& step = basis.step;
  const double of_basis = basis.crowd(step.ranks, true), crowd = basis.crowd(ranks, is_measured);
  const double growth = crowd / of_basis * basis.work(ranks) / basis.work(step.ranks);
  StepForecast o{.ranks = ranks, .compute_s = compute_of(step) * growth};
  o.bubble_s = o.compute_s * bubble_of(step, ranks);
  if (ranks < 2) return o;
  for (const Exchange& e : step.exchanges) {
    const double then_factor = e.grows_with_imbalance ? basis.imbalance(step.ranks) : 1;
    const double factor = e.grows_with_imbalance ? basis.imbalance(ranks) : 1;
    // What collectives take longer in a step than alone is added, not multiplied: from two H200 to four it hardly
    // grows, though messages take half as long again.
    const double alone_s = all_messages(e, then_factor, step.ranks, basis.assumptions, true).seconds;
    const double longer_s = e.busy_s ? std::max(0.0, *e.busy_s / of_basis - alone_s) : 0;
    Message all = all_messages(e, factor, ranks, basis.assumptions, is_measured);
    if (e.grows_with_stages && step.ranks > 1) all.seconds *= (ranks - 1.0) / (step.ranks - 1.0);
    const double communication_s = (all.seconds + longer_s) * crowd;
    if (all.seconds > 0) o.algorithm = all.algorithm;
    o.communication_s += communication_s;
    o.exposed_s += exposed_of(e, communication_s, e.beside_s * growth);
  }
  return o;
}

// The rest of the measured step, which the model does not know. A gain is one of waiting, and changes with it. A loss
// grows with what is hidden, where collectives hide, since they slow down the computation beside them; where no
// collective was timed, it is one of messages, and stays; or else it grows with what ranks take turns at.
double rest_on(const Basis& basis, const StepForecast& then, const StepForecast& now) {
  const double rest_s = basis.step.step_s - then.compute_s - then.bubble_s - then.exposed_s;
  if (now.ranks < 2) return basis.step.ranks < 2 ? rest_s : 0;
  if (rest_s < 0) return then.exposed_s > 0 ? rest_s * now.exposed_s / then.exposed_s : rest_s;
  const double hidden_then_s = then.communication_s - then.exposed_s, hidden_s = now.communication_s - now.exposed_s;
  if (basis.step.overlaps() && hidden_then_s > 0) return rest_s * hidden_s / hidden_then_s;
  if (!basis.step.is_timed()) return rest_s;
  return then.compute_s > 0 ? rest_s * now.compute_s / then.compute_s : rest_s;
}

StepForecast forecast(const Basis& basis, int ranks) {
  const MeasuredStep& step = basis.step;
  const StepForecast then = modelled(basis, step.ranks, true);
  StepForecast o = modelled(basis, ranks, ranks == step.ranks && !basis.assumptions.network);
  o.slowed_s = rest_on(basis, then, o);
  // Where ranks were faster than the model, that gain must not be carried on beyond all the waiting that there is.
  if (ranks != step.ranks) o.slowed_s = std::max(o.slowed_s, -o.exposed_s);
  o.step_s = o.compute_s + o.bubble_s + o.exposed_s + o.slowed_s;
  const bool is_one_batch = step.computation == Computation::shared;
  o.items_per_s = (is_one_batch ? step.items : step.items / step.ranks * ranks) / o.step_s;
  return o;
}

}  // namespace

const MeasuredStep& basis_of(const StepFamily& family, const std::set<int>& from, int ranks) {
  const MeasuredStep* basis = nullptr;
  for (const MeasuredStep& step : family.steps)  // from the fewest ranks on
    if (from.contains(step.ranks) && (!basis || step.ranks <= ranks || (basis->ranks == 1 && ranks > 1))) basis = &step;
  return *basis;
}

std::string why_impossible(const MeasuredStep& step, int ranks) {
  if (step.experts && (ranks > step.experts->experts || step.experts->experts % ranks != 0))
    return fmt::format("{} experts of a layer cannot be shared out evenly over {} ranks", step.experts->experts, ranks);
  if (!step.pipeline || ranks < 2) return "";
  const PipelineShape& shape = *step.pipeline;
  if (ranks * shape.virtual_stages > shape.layers)
    return fmt::format("{:g} layer{} fewer than the {:g} stages of {} ranks with virtual_stages = {:g}", shape.layers,
                       shape.layers == 1 ? " is" : "s are", ranks * shape.virtual_stages, ranks, shape.virtual_stages);
  if (shape.virtual_stages > 1 && std::fmod(shape.micro_batches, ranks) != 0)
    return fmt::format(
        "the interleaved order of virtual_stages = {:g} takes micro-batches in groups of the {} ranks, "
        "and accumulation_steps is {:g}",
        shape.virtual_stages, ranks, shape.micro_batches);
  return "";
}

std::string contradiction_in(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                             const Assumptions& assumptions) {
  constexpr double ms_of_a_s = 1e3;
  // Models are off by a tenth, and collectives in a step by some more; from here on it is another machine or a mistake.
  constexpr double most_beyond_measured = 1.5;
  std::set<const MeasuredStep*> bases{&basis_of(family, from, 1)};
  for (const int n : ranks) bases.insert(&basis_of(family, from, n));
  const ComputeScaling scaling = scaling_of(family, from);
  for (const MeasuredStep* step : bases) {
    const StepForecast then = modelled({*step, scaling, assumptions}, step->ranks, true);
    const std::string on = fmt::format("on {} rank{}", step->ranks, step->ranks == 1 ? "" : "s");
    if (!(then.compute_s > 0))
      return fmt::format("its records {} say that a step takes {:.4g} ms and {}, which leaves no time to compute", on,
                         step->step_s * ms_of_a_s,
                         step->silent_s
                             ? "0 ms without its communication"
                             : fmt::format("waits {:.4g} ms for collectives", step->exposed_s() * ms_of_a_s));
    if (then.compute_s + then.exposed_s <= most_beyond_measured * step->step_s) continue;
    double alone_s = 0, busy_s = 0;
    for (const Exchange& e : step->exchanges) {
      alone_s += all_messages(e, 1, step->ranks, assumptions, true).seconds;
      busy_s += e.busy_s.value_or(0);
    }
    const std::string of_collectives =
        step->ranks < 2
            ? ""
            : fmt::format(" and {:.4g} ms of waiting for {:g} collectives ({})", then.exposed_s * ms_of_a_s,
                          step->count(), alone_s > busy_s ? "as messages cost on its link" : "as its own records say");
    return fmt::format(
        "the records contradict each other {}: a step took {:.4g} ms, but is said to have {:.4g} ms of computing "
        "({}){}",
        on, step->step_s * ms_of_a_s, then.compute_s * ms_of_a_s,
        step->silent_s ? "its step without communication" : "what it did not wait", of_collectives);
  }
  return "";
}

std::vector<StepForecast> forecasts(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                                    const Assumptions& assumptions) {
  const ComputeScaling scaling = scaling_of(family, from);
  const MeasuredStep& fewest = basis_of(family, from, 1);
  const double alone_s = fewest.ranks == 1 ? fewest.step_s : forecast({fewest, scaling, assumptions}, 1).step_s;
  std::vector<StepForecast> all;
  for (const int n : ranks) {
    const MeasuredStep& step = basis_of(family, from, n);
    StepForecast o = forecast({step, scaling, assumptions}, n);
    o.efficiency = alone_s / o.step_s / (step.computation == Computation::shared ? n : 1);
    for (const MeasuredStep& known : family.steps)
      if (known.ranks == n) o.measured_s = known.step_s, o.is_basis = from.contains(n);
    all.push_back(o);
  }
  return all;
}

}  // namespace assay::host::forecast
