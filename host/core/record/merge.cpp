#include "record/merge.hpp"

#include "measure/statistics.hpp"
#include "record/efficiency.hpp"
#include "record/figures.hpp"
#include "record/merge_parts.hpp"
#include "record/merge_telemetry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace assay::host::record {
namespace {

// Two ranks that disagree about what was measured.
struct Mismatch {
  std::string text;
};

double number_of(const Number& value) { return value.value_or(std::numeric_limits<double>::quiet_NaN()); }

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The names that the parts have in `group`, in the first part's order, then those of the later ones.
template <class T>
std::vector<std::string> names_in(const std::vector<const RankPart*>& ranks,
                                  std::optional<Named<T>> CaseResult::*group) {
  std::vector<std::string> names;
  for (const RankPart* rank : ranks)
    if (const auto& own = rank->result.*group)
      for (const auto& entry : *own)
        if (std::find(names.begin(), names.end(), entry.first) == names.end()) names.push_back(entry.first);
  return names;
}

// One series of samples on the ranks that have it.
template <class Entry>
struct Series {
  std::vector<const RankPart*> ranks;
  std::vector<const Entry*> entries;                // the rank's own figures
  std::vector<const std::vector<double>*> samples;  // as many for each rank

  std::vector<double> each(Number Entry::*figure) const {
    std::vector<double> values;
    for (const Entry* entry : entries) values.push_back(number_of(entry->*figure));
    return values;
  }
  std::vector<double> at_step(std::size_t step) const {
    std::vector<double> values;
    for (const auto* own : samples) values.push_back((*own)[step]);
    return values;
  }
  std::size_t steps() const { return samples.front()->size(); }

  // Phases of waiting are shortest on the slowest rank: neither the largest nor the smallest would be a typical time.
  std::vector<double> means() const {
    std::vector<double> values;
    for (std::size_t step = 0; step < steps(); ++step) values.push_back(mean_of(at_step(step)));
    return values;
  }
};

template <class Entry>
Series<Entry> series_of(const std::vector<const RankPart*>& ranks, std::optional<Named<Entry>> CaseResult::*group,
                        std::vector<double> Entry::*samples, const std::string& name) {
  Series<Entry> result;
  for (const RankPart* rank : ranks) {
    const Entry* entry = find(rank->result.*group, name);
    if (!entry) continue;
    result.ranks.push_back(rank);
    result.entries.push_back(entry);
    result.samples.push_back(&(entry->*samples));
    if (result.samples.back()->size() != result.steps())
      throw Mismatch{fmt::format("rank {} has {} samples of '{}' and rank {} has {}", result.ranks.front()->rank,
                                 result.steps(), name, rank->rank, result.samples.back()->size())};
  }
  return result;
}

class OkRanks {
 public:
  OkRanks(std::vector<const RankPart*> ranks, double confidence) : ranks_(std::move(ranks)), confidence_(confidence) {}

  CaseResult merged() {
    CaseResult result = ranks_.front()->result;
    const Series<Phase> step = phase_series("step");
    const std::vector<double> step_ms = slowest(step);
    const double step_mean_ms = mean_of(step_ms);
    result.phase_pass = phase_pass();
    result.phases = phases(step, step_ms, step_mean_ms,
                           result.phase_pass ? number_of(result.phase_pass->step_mean_ms) : step_mean_ms);
    result.step_metrics = step_metrics();
    for (const RankPart* rank : ranks_)
      if (result.sampling && rank->result.sampling)
        keep_larger(result.sampling->instrument_us, rank->result.sampling->instrument_us);
    result.rates = rates(step_mean_ms);
    result.drift = measure::drift(step_ms).value_or(std::numeric_limits<double>::quiet_NaN());
    result.metrics = metrics();
    if (auto largest = largest_memory(ranks_)) result.memory = std::move(largest);
    if (auto largest = largest_contention(ranks_)) result.contention = largest;
    result.wall = largest_wall_times(ranks_);
    if (auto telemetry = merged_telemetry(ranks_)) result.telemetry = std::move(telemetry);
    set_efficiency(result, ranks_);
    set_communication_tax(result, ranks_);
    if (auto validity = merged_validity(ranks_)) result.validity = std::move(validity);
    if (auto verify = merged_verification(ranks_)) result.verify = std::move(verify);
    result.notes = notes(step, step_ms);
    result.by_rank = by_rank(step);
    result.straggler = straggler(step);
    const std::vector<double> means = step.each(&Phase::mean_ms);
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    result.spread = (*most - *least) / mean_of(means);
    return result;
  }

 private:
  Series<Phase> phase_series(const std::string& name) const {
    return series_of(ranks_, &CaseResult::phases, &Phase::samples_ms, name);
  }

  std::vector<double> slowest(const Series<Phase>& step) const {
    if (step.ranks.size() != ranks_.size() || step.steps() == 0)
      throw Mismatch{fmt::format("{} of {} ranks have times of a step", step.ranks.size(), ranks_.size())};
    std::vector<double> slowest_ms;
    for (std::size_t i = 0; i < step.steps(); ++i) {
      const auto values = step.at_step(i);
      slowest_ms.push_back(*std::max_element(values.begin(), values.end()));
    }
    return slowest_ms;
  }

  // All ranks agree on one.
  std::optional<PhasePass> phase_pass() const {
    std::optional<PhasePass> slowest;
    for (const RankPart* rank : ranks_)
      if (const auto& own = rank->result.phase_pass; own && (!slowest || own->step_mean_ms > slowest->step_mean_ms))
        slowest = own;
    return slowest;
  }

  // `phases_of_ms`: the mean step; the phases are shares of it.
  Named<Phase> phases(const Series<Phase>& step, const std::vector<double>& step_ms, double step_mean_ms,
                      double phases_of_ms) const {
    Named<Phase> out;
    out.emplace_back("step",
                     phase_figures(step_ms, mean_of(step.each(&Phase::host_mean_ms)), step_mean_ms, confidence_));
    out.back().second.device_mean_ms = mean_of(step.each(&Phase::device_mean_ms));
    for (const std::string& name : names_in(ranks_, &CaseResult::phases)) {
      if (name == "step") continue;
      const Series<Phase> phase = phase_series(name);
      out.emplace_back(
          name, phase_figures(phase.means(), mean_of(phase.each(&Phase::host_mean_ms)), phases_of_ms, confidence_));
    }
    return out;
  }

  Named<StepMetric> step_metrics() const {
    Named<StepMetric> out;
    for (const std::string& name : names_in(ranks_, &CaseResult::step_metrics)) {
      const Series<StepMetric> metric = series_of(ranks_, &CaseResult::step_metrics, &StepMetric::samples, name);
      out.emplace_back(name, *metric.entries.front());  // unit and direction
      set_metric_figures(out.back().second, metric.means(), confidence_);
    }
    return out;
  }

  // Copies do the same work, so that of one counts.
  Rates rates(double step_mean_ms) const {
    double flops = 0, bytes = 0, items = 0;
    for (const RankPart* rank : ranks_)
      if (const auto& work = rank->result.work) {
        flops += static_cast<double>(work->flops);
        bytes += static_cast<double>(work->bytes);
        items += static_cast<double>(work->items);
      }
    const double parts = ranks_.front()->result.copies ? static_cast<double>(ranks_.size()) : 1;
    return rate_figures(flops / parts, bytes / parts, items / parts, step_mean_ms);
  }

  // A metric that only some ranks report differs as well, and one that is no number on all of them does not.
  bool differs(const std::string& name) const {
    const CaseMetric* first = find(ranks_.front()->result.metrics, name);
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankPart* rank) {
      const CaseMetric* own = find(rank->result.metrics, name);
      if (!own || !first) return true;
      return own->value != first->value && !(std::isnan(own->value) && std::isnan(first->value));
    });
  }

  Named<CaseMetric> metrics() const {
    Named<CaseMetric> out;
    for (const std::string& name : names_in(ranks_, &CaseResult::metrics)) {
      std::vector<double> values;
      std::vector<std::string> words;  // different ones
      for (const RankPart* rank : ranks_) {
        const CaseMetric* own = find(rank->result.metrics, name);
        if (!own) continue;
        if (values.empty()) out.emplace_back(name, *own);
        values.push_back(own->value);
        if (own->word && std::find(words.begin(), words.end(), *own->word) == words.end()) words.push_back(*own->word);
      }
      CaseMetric& merged = out.back().second;
      if (words.size() > 1) {
        merged.value = std::numeric_limits<double>::quiet_NaN();  // a mean of indices has no meaning
        merged.word = fmt::format("{}", fmt::join(words, "/"));
      } else if (words.empty() && differs(name)) {
        merged.value = mean_of(values);
      }
    }
    return out;
  }

  // A rank's note on the steadiness of its step gives way to that on the slowest ranks' times.
  std::vector<std::string> notes(const Series<Phase>& step, const std::vector<double>& step_ms) const {
    RankNotes notes;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!ranks_[i]->result.notes) continue;
      const auto own_steadiness = steadiness_notes(*step.samples[i]);
      for (const std::string& note : *ranks_[i]->result.notes)
        if (std::find(own_steadiness.begin(), own_steadiness.end(), note) == own_steadiness.end())
          notes.add(ranks_[i]->rank, note);
    }
    std::vector<std::string> texts = notes.texts(ranks_.front()->rank);
    for (std::string& text : steadiness_notes(step_ms)) texts.push_back(std::move(text));
    for (std::string& text : device_notes(ranks_)) texts.push_back(std::move(text));
    for (std::string& text : provenance_notes(ranks_)) texts.push_back(std::move(text));
    return texts;
  }

  RankEntry entry_of(const RankPart& part, const Phase& step) const {
    const CaseResult& own = part.result;
    RankEntry entry;
    entry.rank = part.rank, entry.host = part.host;
    if (own.device) entry.device = own.device->ordinal;
    entry.step_mean_ms = step.mean_ms, entry.step_std_ms = step.std_ms, entry.step_p50_ms = step.p50_ms;
    entry.step_min_ms = step.min_ms, entry.step_max_ms = step.max_ms;
    entry.phases.emplace();
    if (own.phases)
      for (const auto& [name, phase] : *own.phases)
        if (name != "step") entry.phases->emplace_back(name, number_of(phase.mean_ms));
    entry.step_metrics.emplace();
    if (own.step_metrics)
      for (const auto& [name, metric] : *own.step_metrics)
        entry.step_metrics->emplace_back(name, number_of(metric.mean));
    entry.metrics.emplace();
    if (own.metrics)
      for (const auto& [name, metric] : *own.metrics)
        if (differs(name)) entry.metrics->emplace_back(name, metric.word ? Value(*metric.word) : value_of(metric));
    if (own.memory) {
      entry.memory_peak_mib = own.memory->peak_total_mib;
      entry.process_peak_mib = own.memory->process_peak_mib;
    }
    entry.telemetry = telemetry_means(own);
    if (own.validity) entry.validity = own.validity->verdict;
    return entry;
  }

  std::vector<RankEntry> by_rank(const Series<Phase>& step) const {
    std::vector<RankEntry> list;
    for (std::size_t i = 0; i < ranks_.size(); ++i) list.push_back(entry_of(*ranks_[i], *step.entries[i]));
    return list;
  }

  Straggler straggler(const Series<Phase>& step) const {
    std::vector<std::size_t> slowest_in(ranks_.size(), 0);
    for (std::size_t i = 0; i < step.steps(); ++i) {
      const auto values = step.at_step(i);
      ++slowest_in[static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin())];
    }
    const auto most = std::max_element(slowest_in.begin(), slowest_in.end());
    return {ranks_[static_cast<std::size_t>(most - slowest_in.begin())]->rank,
            static_cast<double>(*most) / static_cast<double>(step.steps())};
  }

  std::vector<const RankPart*> ranks_;
  double confidence_;
};

std::vector<const RankPart*> in_order(const std::vector<RankPart>& parts) {
  std::vector<const RankPart*> ranks;
  for (const RankPart& part : parts) ranks.push_back(&part);
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankPart* a, const RankPart* b) { return a->rank < b->rank; });
  return ranks;
}

std::vector<RankEntry> known_of(const std::vector<const RankPart*>& ranks) {
  std::vector<RankEntry> list;
  for (const RankPart* rank : ranks) {
    RankEntry entry;
    entry.rank = rank->rank, entry.host = rank->host;
    entry.status = rank->result.status;
    entry.stage = rank->result.stage;
    entry.phase = rank->result.phase;
    entry.step = rank->result.step;
    entry.reason = rank->result.reason;
    list.push_back(std::move(entry));
  }
  return list;
}

CaseResult failed_for(const std::vector<const RankPart*>& ranks, const std::string& mismatch) {
  CaseResult result = ranks.front()->result;
  result.status = Status::failed;
  result.reason = fmt::format(
      "{}: a step is one of all ranks, so each has to run and report as many; do so in the workload on every rank",
      mismatch);
  result.stage = Stage::measure;
  result.phases.reset(), result.step_metrics.reset(), result.rates.reset(), result.drift.reset();
  result.efficiency.reset(), result.silent.reset(), result.phase_pass.reset();
  result.by_rank = known_of(ranks);
  return result;
}

}  // namespace

CaseResult merge_ranks(const std::vector<RankPart>& parts, double confidence) {
  if (parts.empty()) throw std::invalid_argument("merge_ranks: no parts; pass one for each rank");
  if (parts.size() == 1) return parts.front().result;
  for (const RankPart& part : parts)
    if (!part.result.is_ok())
      throw std::invalid_argument(
          fmt::format("merge_ranks: rank {} is '{}'; a case with a rank that is not ok goes to "
                      "merge_failed_ranks",
                      part.rank, name_of(part.result.status)));
  const auto ranks = in_order(parts);
  try {
    return OkRanks(ranks, confidence).merged();
  } catch (const Mismatch& mismatch) {
    return failed_for(ranks, mismatch.text);
  }
}

CaseResult merge_failed_ranks(const std::vector<RankPart>& parts, std::size_t culprit) {
  if (culprit >= parts.size())
    throw std::invalid_argument(fmt::format("merge_failed_ranks: no part {} among {}", culprit, parts.size()));
  const RankPart& guilty = parts[culprit];
  if (guilty.result.is_ok())
    throw std::invalid_argument(
        fmt::format("merge_failed_ranks: rank {} is ok; name one that is not, or use merge_ranks", guilty.rank));
  if (parts.size() == 1) return guilty.result;
  CaseResult result = guilty.result;
  result.rank = guilty.rank;
  result.reason = with_rank(guilty, result.reason.empty() ? "ended without a reason" : result.reason);
  const auto ranks = in_order(parts);
  if (const auto verify = merged_verification(ranks); verify && verify->status == Verification::wrong_result)
    result.verify = verify;
  result.by_rank = known_of(ranks);
  return result;
}

}  // namespace assay::host::record
