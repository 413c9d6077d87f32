#include "results/merge_ranks.hpp"

#include "measure/figures.hpp"
#include "measure/statistics.hpp"
#include "results/merge_telemetry.hpp"
#include "results/rank_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace assay::host {
namespace {

// Two ranks that disagree about what was measured.
struct Mismatch {
  std::string text;
};

// JSON has no NaN: what a plugin reported as one is null by the time it is read here.
double number_of(const Record& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> numbers_of(const Record& list) {
  std::vector<double> numbers;
  for (const Record& value : list) numbers.push_back(number_of(value));
  return numbers;
}

std::string status_of(const RankPart& rank) { return rank.part.value("status", ""); }

// One series of samples on the ranks that have it.
struct Series {
  std::vector<const RankPart*> ranks;
  std::vector<Record> entries;               // the rank's record of it
  std::vector<std::vector<double>> samples;  // the same number for each rank

  std::vector<double> each(const char* figure) const {
    std::vector<double> values;
    for (const Record& entry : entries) values.push_back(number_of(value_at(entry, figure)));
    return values;
  }
  std::vector<double> at_step(std::size_t step) const {
    std::vector<double> values;
    for (const auto& own : samples) values.push_back(own[step]);
    return values;
  }
  std::size_t steps() const { return samples.front().size(); }

  // Phases of waiting are shortest on the slowest rank: neither the largest nor the smallest would be a typical time.
  std::vector<double> means() const {
    std::vector<double> values;
    for (std::size_t step = 0; step < steps(); ++step) values.push_back(mean_of(at_step(step)));
    return values;
  }
};

class OkRanks {
 public:
  OkRanks(std::vector<const RankPart*> ranks, double confidence) : ranks_(std::move(ranks)), confidence_(confidence) {}

  Record merged() {
    Record record = ranks_.front()->part;
    const Series step = series("phases", "step", "samples_ms");
    const std::vector<double> step_ms = slowest(step);
    const double step_mean_ms = mean_of(step_ms);
    record["phases"] = phases(step, step_ms, step_mean_ms);
    record["step_metrics"] = step_metrics();
    record["rates"] = rates(step_mean_ms);
    const auto drift_of_steps = drift(step_ms);
    record["drift"] = drift_of_steps ? Record(*drift_of_steps) : Record();
    record["metrics"] = metrics();
    for (const char* group : {"memory", "contention", "wall_s"})
      if (const Record largest = largest_of(ranks_, group); !largest.is_null()) record[group] = largest;
    if (const Record telemetry = merged_telemetry(ranks_); !telemetry.is_null()) record["telemetry"] = telemetry;
    if (const Record validity = merged_validity(ranks_); !validity.is_null()) record["validity"] = validity;
    if (const Record verify = merged_verify(ranks_); !verify.is_null()) record["verify"] = verify;
    record["notes"] = notes(step, step_ms);
    record["by_rank"] = by_rank(step);
    record["straggler"] = straggler(step);
    const std::vector<double> means = step.each("mean_ms");
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    record["spread"] = (*most - *least) / mean_of(means);
    return record;
  }

 private:
  Series series(const char* group, const std::string& name, const char* samples) const {
    Series result;
    for (const RankPart* rank : ranks_) {
      const Record& entry = value_at(value_at(rank->part, group), name);
      if (entry.is_null()) continue;
      result.ranks.push_back(rank);
      result.entries.push_back(entry);
      result.samples.push_back(numbers_of(value_at(entry, samples)));
      if (result.samples.back().size() != result.steps())
        throw Mismatch{fmt::format("rank {} has {} samples of '{}' and rank {} has {}", result.ranks.front()->rank,
                                   result.steps(), name, rank->rank, result.samples.back().size())};
    }
    return result;
  }

  std::vector<double> slowest(const Series& step) const {
    if (step.ranks.size() != ranks_.size() || step.steps() == 0)
      throw Mismatch{fmt::format("{} of {} ranks have times of a step", step.ranks.size(), ranks_.size())};
    std::vector<double> slowest_ms;
    for (std::size_t i = 0; i < step.steps(); ++i) {
      const auto values = step.at_step(i);
      slowest_ms.push_back(*std::max_element(values.begin(), values.end()));
    }
    return slowest_ms;
  }

  Record phases(const Series& step, const std::vector<double>& step_ms, double step_mean_ms) const {
    Record out = Record::object();
    out["step"] = phase_figures(step_ms, mean_of(step.each("host_mean_ms")), step_mean_ms, confidence_);
    out["step"]["device_mean_ms"] = mean_of(step.each("device_mean_ms"));
    for (const std::string& name : names_in(ranks_, "phases")) {
      if (name == "step") continue;
      const Series phase = series("phases", name, "samples_ms");
      out[name] = phase_figures(phase.means(), mean_of(phase.each("host_mean_ms")), step_mean_ms, confidence_);
    }
    return out;
  }

  Record step_metrics() const {
    Record out = Record::object();
    for (const std::string& name : names_in(ranks_, "step_metrics")) {
      const Series metric = series("step_metrics", name, "samples");
      out[name] = metric.entries.front();  // unit and direction
      out[name].update(metric_figures(metric.means(), confidence_));
    }
    return out;
  }

  Record rates(double step_mean_ms) const {
    const auto sum = [this](const char* amount) {
      double total = 0;
      for (const RankPart* rank : ranks_)
        if (const Record& own = value_at(value_at(rank->part, "work"), amount); own.is_number())
          total += own.get<double>();
      return total;
    };
    return rate_figures(sum("flops"), sum("bytes"), sum("items"), step_mean_ms);
  }

  // A metric that only some ranks report differs as well.
  bool differs(const std::string& name) const {
    const Record& first = value_at(value_at(value_at(ranks_.front()->part, "metrics"), name), "value");
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankPart* rank) {
      const Record& entry = value_at(value_at(rank->part, "metrics"), name);
      return entry.is_null() || value_at(entry, "value") != first;
    });
  }

  Record metrics() const {
    Record out = Record::object();
    for (const std::string& name : names_in(ranks_, "metrics")) {
      std::vector<double> values;
      std::vector<std::string> words;  // different ones
      for (const RankPart* rank : ranks_) {
        const Record& entry = value_at(value_at(rank->part, "metrics"), name);
        if (entry.is_null()) continue;
        if (values.empty()) out[name] = entry;
        values.push_back(number_of(value_at(entry, "value")));
        if (const Record& word = value_at(entry, "word"); word.is_string())
          if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
      }
      if (words.size() > 1) {
        out[name]["value"] = nullptr;  // a mean of indices says nothing
        out[name]["word"] = fmt::format("{}", fmt::join(words, "/"));
      } else if (words.empty() && differs(name)) {
        out[name]["value"] = mean_of(values);
      }
    }
    return out;
  }

  // What a rank says of the steadiness of its own step gives way to what there is to say of the slowest ranks' times.
  Record notes(const Series& step, const std::vector<double>& step_ms) const {
    RankNotes notes;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const auto own_steadiness = steadiness_notes(step.samples[i]);
      for (const Record& note : value_at(ranks_[i]->part, "notes"))
        if (std::find(own_steadiness.begin(), own_steadiness.end(), note) == own_steadiness.end())
          notes.add(ranks_[i]->rank, note.get<std::string>());
    }
    Record texts = notes.texts(ranks_.front()->rank);
    for (std::string& text : steadiness_notes(step_ms)) texts.push_back(std::move(text));
    for (std::string& text : device_notes(ranks_)) texts.push_back(std::move(text));
    return texts;
  }

  Record by_rank(const Series& step) const {
    Record list = Record::array();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Record& part = ranks_[i]->part;
      Record entry = {{"rank", ranks_[i]->rank},
                      {"host", ranks_[i]->host},
                      {"device", value_at(value_at(part, "device"), "ordinal")}};
      for (const char* figure : {"mean_ms", "std_ms", "p50_ms", "min_ms", "max_ms"})
        entry[std::string("step_") + figure] = value_at(step.entries[i], figure);
      entry["phases"] = Record::object();
      for (const auto& [name, phase] : value_at(part, "phases").items())
        if (name != "step") entry["phases"][name] = value_at(phase, "mean_ms");
      entry["step_metrics"] = Record::object();
      for (const auto& [name, metric] : value_at(part, "step_metrics").items())
        entry["step_metrics"][name] = value_at(metric, "mean");
      entry["metrics"] = Record::object();
      for (const auto& [name, metric] : value_at(part, "metrics").items())
        if (differs(name)) entry["metrics"][name] = value_at(metric, metric.contains("word") ? "word" : "value");
      entry["memory_peak_mib"] = value_at(value_at(part, "memory"), "peak_total_mib");
      entry["process_peak_mib"] = value_at(value_at(part, "memory"), "process_peak_mib");
      if (const Record telemetry = telemetry_means(*ranks_[i]); !telemetry.empty()) entry["telemetry"] = telemetry;
      if (const Record& validity = value_at(part, "validity"); !validity.is_null())
        entry["validity"] = value_at(validity, "verdict");
      list.push_back(std::move(entry));
    }
    return list;
  }

  Record straggler(const Series& step) const {
    std::vector<std::size_t> slowest_in(ranks_.size(), 0);
    for (std::size_t i = 0; i < step.steps(); ++i) {
      const auto values = step.at_step(i);
      ++slowest_in[static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin())];
    }
    const auto most = std::max_element(slowest_in.begin(), slowest_in.end());
    return {{"rank", ranks_[static_cast<std::size_t>(most - slowest_in.begin())]->rank},
            {"share", static_cast<double>(*most) / static_cast<double>(step.steps())}};
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

Record what_is_known(const std::vector<const RankPart*>& ranks) {
  Record list = Record::array();
  for (const RankPart* rank : ranks) {
    Record entry = {{"rank", rank->rank}, {"host", rank->host}};
    for (const char* key : {"status", "stage", "phase", "step", "reason"})
      if (const Record& value = value_at(rank->part, key); !value.is_null() && value != "") entry[key] = value;
    list.push_back(std::move(entry));
  }
  return list;
}

Record failed_for(const std::vector<const RankPart*>& ranks, const std::string& mismatch) {
  Record record = ranks.front()->part;
  record["status"] = "failed";
  record["reason"] = fmt::format(
      "{}: a step is one of all ranks, so each has to run and report as many; do so in the workload on every rank",
      mismatch);
  record["stage"] = "measure";
  for (const char* figures : {"phases", "step_metrics", "rates", "drift"}) record.erase(figures);
  record["by_rank"] = what_is_known(ranks);
  return record;
}

}  // namespace

Record merge_ranks(const std::vector<RankPart>& parts, double confidence) {
  if (parts.empty()) throw std::invalid_argument("merge_ranks: no parts; pass one for each rank");
  if (parts.size() == 1) return parts.front().part;
  for (const RankPart& part : parts)
    if (status_of(part) != "ok")
      throw std::invalid_argument(
          fmt::format("merge_ranks: rank {} is '{}'; a case with a rank that is not ok goes to "
                      "merge_failed_ranks",
                      part.rank, status_of(part)));
  const auto ranks = in_order(parts);
  try {
    return OkRanks(ranks, confidence).merged();
  } catch (const Mismatch& mismatch) {
    return failed_for(ranks, mismatch.text);
  }
}

Record merge_failed_ranks(const std::vector<RankPart>& parts, std::size_t culprit) {
  if (culprit >= parts.size())
    throw std::invalid_argument(fmt::format("merge_failed_ranks: no part {} among {}", culprit, parts.size()));
  const RankPart& guilty = parts[culprit];
  if (status_of(guilty) == "ok")
    throw std::invalid_argument(
        fmt::format("merge_failed_ranks: rank {} is ok; name one that is not, or use merge_ranks", guilty.rank));
  if (parts.size() == 1) return guilty.part;
  Record record = guilty.part;
  record["rank"] = guilty.rank;
  const std::string reason = record.value("reason", "");
  record["reason"] = with_rank(guilty, reason.empty() ? "ended without a reason" : reason);
  const auto ranks = in_order(parts);
  if (const Record verify = merged_verify(ranks); value_at(verify, "status") == "wrong_result")
    record["verify"] = verify;
  record["by_rank"] = what_is_known(ranks);
  return record;
}

}  // namespace assay::host
