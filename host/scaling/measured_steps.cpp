#include "scaling/measured_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::host::scaling {
namespace {

using record::CaseRecord;

constexpr const char* ranks_axis = "run.ranks";
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

// All that makes the case but its ranks.
std::string family_of(const CaseRecord& r) {
  std::string text = r.identity.workload + (r.result.device ? "/" + r.result.device->name : "");
  for (const auto& [name, value] : r.identity.params) text += fmt::format(" {}={}", name, to_text(value));
  for (const auto& [name, value] : r.identity.axes)
    if (name != ranks_axis) text += fmt::format(" {}={}", name, to_text(value));
  for (const char* setting : {"run.threads", "run.bind", "measure.inner", "measure.cold_cache"})
    if (const Value* const value = record::find(r.identity.settings, setting))
      text += fmt::format(" {}={}", setting, to_text(*value));
  return text;
}

std::string label_of(const CaseRecord& r) {
  std::string label = r.identity.workload;
  for (const auto& [name, value] : r.identity.axes)
    if (name != ranks_axis) label += fmt::format(" {}={}", name, to_text(value));
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

// Families of one label get the parameters in which they differ.
void tell_apart(std::vector<StepFamily>& families) {
  std::map<std::string, std::vector<StepFamily*>> of_label;
  for (StepFamily& family : families) of_label[family.label].push_back(&family);
  for (const auto& [label, alike] : of_label)
    for (const auto& [name, value] : alike.front()->params) {
      const auto has_same = [&, &name = name, &value = value](const StepFamily* family) {
        const Value* const own = record::find(family->params, name);
        return own && to_text(*own) == to_text(value);
      };
      if (std::all_of(alike.begin(), alike.end(), has_same)) continue;
      for (StepFamily* family : alike)
        if (const Value* const own = record::find(family->params, name))
          family->label += fmt::format(" {}={}", name, to_text(*own));
    }
  std::map<std::string, int> count;
  for (const StepFamily& family : families) ++count[family.label];
  for (StepFamily& family : families)
    if (count[family.label] > 1) family.label += " on " + family.steps.front().link.text();
}

bool is_amount(const std::optional<double>& x) { return x && std::isfinite(*x) && *x >= 0; }

// Collectives that run beside the backward: as the workload's strategy says, or else as their times tell. On one rank
// nothing is under way that could overlap.
bool overlaps(const CaseRecord& r, int ranks) {
  if (ranks < 2) return false;
  if (const Value* const strategy = record::find(r.identity.params, "strategy"))
    return to_text(*strategy).starts_with("overlap");
  return metric(r, "overlap_share").value_or(0) > least_overlap;
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
  std::vector<StepFamily> families;
  std::map<std::string, std::size_t> known;
  for (const ObservedCase& observed : cases) {
    const CaseRecord& r = *observed.record;
    if (!r.result.is_ok() || r.identity.workload == "all_reduce") continue;
    const std::optional<MeasuredStep> step = step_of(observed);
    if (!step) {
      left_out.insert(r.identity.workload);
      continue;
    }
    const auto [at, is_new] = known.emplace(family_of(r), families.size());
    if (is_new)
      families.push_back({.label = label_of(r),
                          .workload = r.identity.workload,
                          .item_unit = r.result.work ? r.result.work->item_unit : "",
                          .params = r.identity.params});
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
      // Beside the backward a collective takes longer than alone: it tells the wire only where nothing ran beside it.
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

}  // namespace assay::host::scaling
