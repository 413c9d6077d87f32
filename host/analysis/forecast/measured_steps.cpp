#include "forecast/measured_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace assay::host::forecast {
namespace {

using record::CaseRecord;

constexpr double s_of_a_ms = 1e-3;
// A workload that waits for its collectives hides some of them all the same, where ranks wait for one another.
constexpr double least_overlap = 0.2;
constexpr int most_ranks = 1 << 20;

std::optional<double> metric(const CaseRecord& r, std::string_view name) {
  const record::CaseMetric* const found = record::find(r.result.metrics, name);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<double> phase_s(const CaseRecord& r, std::string_view name) {
  const record::Phase* const phase = record::find(r.result.phases, name);
  if (!phase || !phase->mean_ms) return std::nullopt;
  return *phase->mean_ms * s_of_a_ms;
}

// Says what the case is, without its ranks and its parameters.
std::string kind_of(const CaseRecord& r) {
  std::string text = r.identity.workload + (r.result.device ? "/" + r.result.device->name : "");
  for (const auto& [name, value] : r.identity.axes)
    if (name != record::ranks_axis && !record::find(r.identity.params, name))
      text += fmt::format(" {}={}", name, to_text(value));
  for (const char* setting : {"run.threads", "run.bind", "measure.inner", "measure.cold_cache"})
    if (const Value* const value = record::find(r.identity.settings, setting))
      text += fmt::format(" {}={}", setting, to_text(*value));
  return text;
}

using Params = std::map<std::string, std::string>;

Params params_of(const CaseRecord& r) {
  Params params;
  for (const auto& [name, value] : r.identity.params) params.emplace(name, to_text(value));
  return params;
}

// Records of one family: each parameter has one value in all that say it. Records of before a parameter existed do not.
struct Grouping {
  std::string kind;
  Params params;  // of all that belong to it
};

bool agrees(const Grouping& grouping, const std::string& kind, const Params& params) {
  return grouping.kind == kind && std::all_of(params.begin(), params.end(), [&](const auto& param) {
           const auto found = grouping.params.find(param.first);
           return found == grouping.params.end() || found->second == param.second;
         });
}

// The number of its grouping for each record, in no order. One that says less than others joins those that it agrees
// with, where these are one grouping; where it could belong to several, it stays separate.
std::vector<std::size_t> groupings_of(const std::vector<const CaseRecord*>& records) {
  std::map<std::pair<std::string, Params>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < records.size(); ++i) alike[{kind_of(*records[i]), params_of(*records[i])}].push_back(i);
  std::vector<std::pair<const std::pair<std::string, Params>*, const std::vector<std::size_t>*>> fullest_first;
  for (const auto& [key, members] : alike) fullest_first.emplace_back(&key, &members);
  std::stable_sort(fullest_first.begin(), fullest_first.end(),
                   [](const auto& a, const auto& b) { return a.first->second.size() > b.first->second.size(); });
  std::vector<Grouping> groupings;
  std::vector<std::size_t> number(records.size());
  for (const auto& [key, members] : fullest_first) {
    std::vector<std::size_t> fitting;
    for (std::size_t g = 0; g < groupings.size(); ++g)
      if (agrees(groupings[g], key->first, key->second)) fitting.push_back(g);
    if (fitting.size() != 1) {
      fitting = {groupings.size()};
      groupings.push_back({key->first, {}});
    }
    groupings[fitting.front()].params.insert(key->second.begin(), key->second.end());
    for (const std::size_t i : *members) number[i] = fitting.front();
  }
  return number;
}

std::string label_of(const CaseRecord& r) {
  std::string label = r.identity.workload;
  for (const auto& [name, value] : r.identity.axes)
    if (name != record::ranks_axis) label += fmt::format(" {}={}", name, to_text(value));
  return label;
}

// Processors by the threads of a rank, on one machine.
std::optional<double> ranks_at_full_speed(const CaseRecord& r, std::optional<double> processors) {
  const bool is_cpu = r.result.device && r.result.device->kind == "cpu";
  if (!is_cpu || !processors || r.result.threads.count.value_or(0) < 1) return std::nullopt;
  return std::max(1.0, *processors / static_cast<double>(*r.result.threads.count));
}

int machines_of(const CaseRecord& r) {
  std::set<std::string> hosts;
  for (const record::RankEntry& rank : r.result.by_rank) hosts.insert(rank.host);
  return std::max(1, static_cast<int>(hosts.size()));
}

// The device, the library that carries messages between ranks on it, and whether they leave the machine.
Link link_of(const CaseRecord& r, std::string_view library_param) {
  if (!r.result.device) return {};
  const Value* const asked = record::find(r.identity.params, library_param);
  std::string library = asked ? to_text(*asked) : "auto";
  if (library == "auto") library = r.result.device->kind == "cpu" ? "gloo" : "nccl";
  return {r.result.device->name, library, machines_of(r) > 1};
}

int on_one_machine(int ranks, int machines) { return (ranks + machines - 1) / machines; }

// Those of all its records; what some do not say is taken to agree.
void take_parameters(StepFamily& family, const std::vector<const CaseRecord*>& records) {
  for (const CaseRecord* const r : records)
    for (const auto& [name, value] : r->identity.params) {
      if (!record::find(family.params, name)) family.params.emplace_back(name, value);
      const auto says_it = [&name = name](const CaseRecord* other) {
        return record::find(other->identity.params, name);
      };
      if (!std::all_of(records.begin(), records.end(), says_it))
        family.taken_to_agree.insert(fmt::format("{}={}", name, to_text(value)));
    }
}

// Families of one label get the parameters in which they differ.
void tell_apart(std::vector<StepFamily>& families) {
  std::map<std::string, std::vector<StepFamily*>> of_label;
  for (StepFamily& family : families) of_label[family.label].push_back(&family);
  for (const auto& [label, alike] : of_label) {
    std::vector<std::string> names;
    for (const StepFamily* family : alike)
      for (const auto& [name, value] : family->params)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    for (const std::string& name : names) {
      const auto text_in = [&name](const StepFamily* family) {
        const Value* const own = record::find(family->params, name);
        return own ? to_text(*own) : "not said";
      };
      const std::string first = text_in(alike.front());
      if (std::all_of(alike.begin(), alike.end(), [&](const StepFamily* f) { return text_in(f) == first; })) continue;
      for (StepFamily* family : alike) family->label += fmt::format(" {}={}", name, text_in(family));
    }
  }
  std::map<std::string, int> count;
  for (const StepFamily& family : families) ++count[family.label];
  for (StepFamily& family : families)
    if (count[family.label] > 1) family.label += " on " + family.steps.front().link.text();
}

bool is_amount(const std::optional<double>& x) { return x && std::isfinite(*x) && *x >= 0; }

// Collectives that run beside the backward: as the workload's strategy says, or else as their times show. On one rank
// nothing is under way that could overlap.
bool overlaps(const CaseRecord& r, int ranks) {
  if (ranks < 2) return false;
  if (const Value* const strategy = record::find(r.identity.params, "strategy"))
    return to_text(*strategy).starts_with("overlap");
  return metric(r, "overlap_share").value_or(0) > least_overlap;
}

// Why nothing can be expected from the record: what of what is needed it does not have, and the remedy.
std::string why_not(const CaseRecord& r) {
  constexpr std::array needed{"collectives", "communication_bytes", "communication_ms"};
  std::vector<std::string> missing;
  for (const char* const name : needed)
    if (!metric(r, name)) missing.push_back(name);
  const Value* const execution = record::find(r.identity.params, "execution");
  const bool is_graph = execution && to_text(*execution) == "graph";
  if (std::find(missing.begin(), missing.end(), "collectives") != missing.end())
    return metric(r, "messages") ? "what it counts as 'messages' need not be all-reduces, and only steps whose "
                                   "collectives are can be expected (those of ddp, which report 'collectives')"
                                 : "it has no figure 'collectives', the number of a step's all-reduces, as ddp has it";
  if (missing.size() == 1 && missing.front() == "communication_ms" && is_graph)
    return "it has no figure 'communication_ms', since nothing times single collectives in a graph; run it with "
           "execution = \"eager\" ('--set workload.params.execution=eager')";
  if (!missing.empty())
    return fmt::format("it has no figure '{}'; run its experiment again", fmt::join(missing, "', '"));
  if (!phase_s(r, "step")) return "it has no time of a step";
  return "it has figures that cannot be: a step of 0 ms, a number or a time below 0, or no number of ranks";
}

// Nothing where the record leaves out what is needed, or has what cannot be.
std::optional<MeasuredStep> step_of(const ObservedCase& observed) {
  const CaseRecord& r = *observed.record;
  const auto step_s = phase_s(r, "step"), collectives = metric(r, "collectives");
  const auto bytes = metric(r, "communication_bytes"), busy_ms = metric(r, "communication_ms");
  const auto exposed_ms = metric(r, "exposed_ms");
  const int ranks = r.identity.ranks.value_or(0);
  if (!is_amount(step_s) || *step_s == 0 || !is_amount(collectives) || !is_amount(bytes) || !is_amount(busy_ms) ||
      (exposed_ms && !is_amount(exposed_ms)) || ranks < 1 || ranks > most_ranks)
    return std::nullopt;
  MeasuredStep step{.ranks = ranks, .step_s = *step_s};
  if (r.result.silent && is_amount(r.result.silent->step_mean_ms))
    step.silent_s = *r.result.silent->step_mean_ms * s_of_a_ms;
  step.backward_s = phase_s(r, "backward").value_or(0);
  step.collectives = *collectives, step.bytes = *bytes;
  const auto small = metric(r, "small_collectives"), small_bytes = metric(r, "small_communication_bytes");
  if (is_amount(small) && is_amount(small_bytes) && *small <= step.collectives && *small_bytes <= step.bytes)
    step.small_collectives = *small, step.small_bytes = *small_bytes;
  step.link = link_of(r, "comm");
  step.machines = machines_of(r);
  step.communication_s = *busy_ms * s_of_a_ms;
  step.exposed_s = exposed_ms.value_or(*busy_ms) * s_of_a_ms;
  step.ranks_at_full_speed = ranks_at_full_speed(r, observed.processors);
  step.overlaps = overlaps(r, ranks);
  if (r.result.rates && is_amount(r.result.rates->items_per_s)) step.items = *r.result.rates->items_per_s * *step_s;
  return step;
}

// The mean of two that are of one number of ranks.
void add(MeasuredStep& into, const MeasuredStep& other) {
  const double count = into.records++;
  const auto mean = [count](double& a, double b) { a = (a * count + b) / (count + 1); };
  mean(into.step_s, other.step_s), mean(into.backward_s, other.backward_s);
  mean(into.communication_s, other.communication_s), mean(into.exposed_s, other.exposed_s);
  mean(into.items, other.items);
  mean(into.collectives, other.collectives), mean(into.bytes, other.bytes);
  const bool both_tell = into.small_collectives > 0 && other.small_collectives > 0;
  if (both_tell)
    mean(into.small_collectives, other.small_collectives), mean(into.small_bytes, other.small_bytes);
  else
    into.small_collectives = into.small_bytes = 0;
  into.overlaps = into.overlaps || other.overlaps;
  if (into.silent_s && other.silent_s) mean(*into.silent_s, *other.silent_s);
}

}  // namespace

double crowding(int ranks_of_machine, std::optional<double> ranks_at_full_speed) {
  return ranks_at_full_speed ? std::max(1.0, ranks_of_machine / *ranks_at_full_speed) : 1.0;
}

int ranks_of_machine(const MeasuredStep& step, int ranks) {
  return step.machines > 1 ? std::min(ranks, on_one_machine(step.ranks, step.machines)) : ranks;
}

std::vector<StepFamily> step_families(const std::vector<ObservedCase>& cases, std::set<std::string>& left_out) {
  std::vector<const CaseRecord*> records;
  std::vector<MeasuredStep> measured;
  for (const ObservedCase& observed : cases) {
    const CaseRecord& r = *observed.record;
    if (!r.result.is_ok() || r.identity.workload == "all_reduce") continue;
    if (const std::optional<MeasuredStep> step = step_of(observed)) {
      records.push_back(&r);
      measured.push_back(*step);
    } else
      left_out.insert(fmt::format("{}: {}", r.identity.workload, why_not(r)));
  }
  const std::vector<std::size_t> groupings = groupings_of(records);
  std::vector<StepFamily> families;
  std::map<std::size_t, std::size_t> known;
  std::vector<std::vector<const CaseRecord*>> members;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const CaseRecord& r = *records[i];
    const MeasuredStep* const step = &measured[i];
    const auto [at, is_new] = known.emplace(groupings[i], families.size());
    if (is_new) {
      families.push_back({.label = label_of(r),
                          .workload = r.identity.workload,
                          .item_unit = r.result.work ? r.result.work->item_unit : ""});
      members.emplace_back();
    }
    members[at->second].push_back(&r);
    StepFamily& family = families[at->second];
    if (r.result.validity && r.result.validity->verdict != record::ValidityVerdict::valid &&
        r.result.validity->verdict != record::ValidityVerdict::power_limited)
      family.doubts.insert(record::name_of(r.result.validity->verdict));
    std::vector<MeasuredStep>& steps = family.steps;
    const auto same =
        std::find_if(steps.begin(), steps.end(), [&](const MeasuredStep& other) { return other.ranks == step->ranks; });
    if (same == steps.end())
      steps.push_back(*step);
    else
      add(*same, *step);
  }
  for (std::size_t f = 0; f < families.size(); ++f) take_parameters(families[f], members[f]);
  tell_apart(families);
  for (StepFamily& family : families)
    std::sort(family.steps.begin(), family.steps.end(),
              [](const MeasuredStep& a, const MeasuredStep& b) { return a.ranks < b.ranks; });
  return families;
}

std::vector<WirePoint> wire_points(const std::vector<ObservedCase>& cases) {
  std::vector<WirePoint> points;
  for (const ObservedCase& observed : cases) {
    const CaseRecord& r = *observed.record;
    if (!r.result.is_ok() || r.identity.workload != "all_reduce") continue;
    const Value* const name = record::find(r.identity.params, "collective");
    const auto collective = name ? collective_named(to_text(*name)) : std::nullopt;
    const auto bytes = metric(r, "message_bytes"), gbs = metric(r, "algorithm_bandwidth_gbs");
    if (!collective || !is_amount(bytes) || !is_amount(gbs) || *bytes == 0 || *gbs == 0) continue;
    if (r.result.sampling && r.result.sampling->is_cold)
      continue;  // steps of training find their gradients in the caches
    const int ranks = r.identity.ranks.value_or(1);
    const double crowd = crowding(on_one_machine(ranks, machines_of(r)), ranks_at_full_speed(r, observed.processors));
    points.push_back({link_of(r, "backend"), *collective, ranks, *bytes, *bytes / (*gbs * 1e9) / crowd});
  }
  return points;
}

std::vector<WirePoint> wire_points(const std::vector<StepFamily>& families) {
  std::vector<WirePoint> points;
  for (const StepFamily& family : families)
    for (const MeasuredStep& step : family.steps) {
      // Beside the backward a collective takes longer than alone: it measures the wire only where nothing ran beside
      // it.
      if (step.ranks < 2 || step.collectives == 0 || step.overlaps) continue;
      // The mean of small and large ones stands for both only where both are sent in one way.
      if (step.small_collectives > 0 && step.small_collectives < step.collectives && step.link.library == "gloo")
        continue;
      const double crowd = crowding(ranks_of_machine(step, step.ranks), step.ranks_at_full_speed);
      points.push_back({step.link, Collective::all_reduce, step.ranks, step.bytes / step.collectives,
                        step.communication_s / step.collectives / crowd});
    }
  return points;
}

}  // namespace assay::host::forecast
