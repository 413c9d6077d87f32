#include "forecast/measured_steps.hpp"

#include "forecast/recorded_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::host::forecast {
namespace {

using record::CaseRecord;

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

double bytes_of(const Exchange& exchange) {
  double sum = 0;
  for (const Messages& m : exchange.messages) sum += m.bytes;
  return sum;
}

// The mean of two that are of one number of ranks.
void add(MeasuredStep& into, const MeasuredStep& other) {
  const double count = into.records++;
  const auto mean = [count](double& a, double b) { a = (a * count + b) / (count + 1); };
  const auto mean_of_known = [&mean](std::optional<double>& a, const std::optional<double>& b) {
    if (a && b)
      mean(*a, *b);
    else
      a.reset();
  };
  mean(into.step_s, other.step_s), mean(into.items, other.items);
  if (into.silent_s && other.silent_s) mean(*into.silent_s, *other.silent_s);
  if (into.experts && other.experts) mean(into.experts->imbalance, other.experts->imbalance);
  for (std::size_t e = 0; e < std::min(into.exchanges.size(), other.exchanges.size()); ++e) {
    Exchange& a = into.exchanges[e];
    const Exchange& b = other.exchanges[e];
    mean(a.beside_s, b.beside_s);
    mean_of_known(a.busy_s, b.busy_s), mean_of_known(a.exposed_s, b.exposed_s);
    a.overlaps = a.overlaps || b.overlaps;
    // Records of before small ones were counted have the sums alone.
    if (a.messages.size() != b.messages.size()) {
      a.messages = {{a.messages.front().collective, a.count(), bytes_of(a)}};
      mean(a.messages.front().count, b.count()), mean(a.messages.front().bytes, bytes_of(b));
      continue;
    }
    for (std::size_t m = 0; m < a.messages.size(); ++m)
      mean(a.messages[m].count, b.messages[m].count), mean(a.messages[m].bytes, b.messages[m].bytes);
  }
}

}  // namespace

double Exchange::count() const {
  double sum = 0;
  for (const Messages& m : messages) sum += m.count;
  return sum;
}

bool MeasuredStep::is_timed() const {
  return std::all_of(exchanges.begin(), exchanges.end(), [](const Exchange& e) { return e.busy_s.has_value(); });
}
bool MeasuredStep::overlaps() const {
  return std::any_of(exchanges.begin(), exchanges.end(), [](const Exchange& e) { return e.overlaps; });
}
double MeasuredStep::exposed_s() const {
  double sum_s = 0;
  for (const Exchange& e : exchanges) sum_s += e.exposed_s.value_or(0);
  return sum_s;
}
double MeasuredStep::count() const {
  double sum = 0;
  for (const Exchange& e : exchanges) sum += e.count();
  return sum;
}

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
    RecordedStep found = recorded_step(observed);
    if (found.step) {
      records.push_back(&r);
      measured.push_back(std::move(*found.step));
    } else
      left_out.insert(fmt::format("{}: {}", r.identity.workload, found.why_not));
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
    const double crowd = crowding(on_one_machine(ranks, machines_of(r)), ranks_at_full_speed(observed));
    points.push_back({link_of(r, "backend"), *collective, ranks, *bytes, *bytes / (*gbs * 1e9) / crowd});
  }
  return points;
}

std::vector<WirePoint> wire_points(const std::vector<StepFamily>& families) {
  std::vector<WirePoint> points;
  for (const StepFamily& family : families)
    for (const MeasuredStep& step : family.steps) {
      if (step.ranks < 2) continue;
      const double crowd = crowding(ranks_of_machine(step, step.ranks), step.ranks_at_full_speed);
      for (const Exchange& e : step.exchanges) {
        // Beside the backward, or the next chunk, a collective takes longer than alone: it measures the wire only where
        // nothing ran beside it. Times of small and large ones, or of several kinds, stand for none of them. Rows of
        // experts come when the last rank has chosen.
        if (e.overlaps || e.grows_with_imbalance || !e.busy_s || e.messages.size() != 1 || e.count() == 0) continue;
        const Messages& m = e.messages.front();
        points.push_back({step.link, m.collective, step.ranks, m.bytes / m.count, *e.busy_s / m.count / crowd});
      }
    }
  return points;
}

}  // namespace assay::host::forecast
