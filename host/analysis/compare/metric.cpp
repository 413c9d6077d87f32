#include "compare/metric.hpp"

#include "common/device_kinds.hpp"
#include "record/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace assay::host::compare {
namespace {

record::Number finite(const record::Number& number) { return number && std::isfinite(*number) ? number : std::nullopt; }

std::vector<double> finite(const std::vector<double>& numbers) {
  std::vector<double> result;
  std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(result), [](double v) { return std::isfinite(v); });
  return result;
}

std::optional<std::size_t> count(const std::optional<std::int64_t>& n) {
  return n ? std::optional(static_cast<std::size_t>(*n)) : std::nullopt;
}

bool ran_on_gpu(const record::CaseRecord& record) {
  return !record.result.device || is_gpu(record.result.device->kind);
}

// Of the time that the threads wanted to run, they waited for other processes, or the hypervisor ran another guest.
// A case's own threads and ranks make each other wait when it runs alone as well, so that wait does not count; older
// records do not separate it. On a device other than the CPU the processors matter little.
double waited_share(const record::CaseRecord& record) {
  if (ran_on_gpu(record) || !record.result.contention) return 0;
  const record::ProcessorShares& shares = *record.result.contention;
  const record::Number foreign = finite(shares.foreign_wait_share), others = finite(shares.others_share);
  const record::Number wait = foreign ? foreign : finite(shares.wait_share);
  return (wait ? *wait : others.value_or(0)) + finite(shares.steal_share).value_or(0);
}

std::optional<RunFigure> phase_figure(const record::CaseRecord& record, const std::string& name) {
  const record::Phase* phase = record::find(record.result.phases, name);
  if (!phase) return std::nullopt;
  const record::Number mean = finite(phase->mean_ms);
  RunFigure figure;
  figure.samples = finite(phase->samples_ms);
  if (!mean && figure.samples.empty()) return std::nullopt;
  figure.mean = mean ? *mean : location(figure.samples, Statistic::mean);
  figure.std = finite(phase->std_ms);
  figure.n = count(phase->n);
  figure.timed = true;
  figure.waited_share = waited_share(record);
  figure.shared_device = ran_on_gpu(record) && record.result.validity &&
                         record.result.validity->verdict == record::ValidityVerdict::contended;
  return figure;
}

// A rate is a step's work over its time: its samples are those of the step.
std::optional<MetricOfRecord> rate_of(const record::CaseRecord& record, const std::string& name) {
  constexpr std::string_view per_second = "_per_s";
  if (!name.ends_with(per_second)) return std::nullopt;
  const record::Number rate = record::cell_of(record, name).number();
  std::optional<RunFigure> step = phase_figure(record, "step");
  if (!rate || !step) return std::nullopt;
  step->scale = *rate * step->mean;
  std::string unit = name.substr(0, name.size() - per_second.size());
  if (unit == "items" && record.result.work && !record.result.work->item_unit.empty())
    unit = record.result.work->item_unit;
  return MetricOfRecord{*step, fmt::format("{}/s", unit), Direction::higher_is_better};
}

std::optional<MetricOfRecord> step_metric_of(const record::CaseRecord& record, const std::string& name) {
  const record::StepMetric* metric = record::find(record.result.step_metrics, name);
  if (!metric || !finite(metric->mean)) return std::nullopt;
  RunFigure figure;
  figure.mean = *metric->mean;
  figure.std = finite(metric->std);
  figure.samples = finite(metric->samples);
  figure.n = count(metric->n);
  return MetricOfRecord{std::move(figure), metric->unit, metric->direction};
}

std::optional<MetricOfRecord> single_figure_of(const record::CaseRecord& record, const std::string& name) {
  const record::ColumnValue found = record::value_of(record, name);
  const record::Number value = found.cell.number();
  if (!value) return std::nullopt;
  MetricOfRecord result;
  result.figure.mean = *value;
  result.figure.exact = found.exact;
  result.unit = found.unit;
  result.better = found.direction;
  return result;
}

bool is_positive(const RunFigure& figure) {
  return figure.mean > 0 && std::all_of(figure.samples.begin(), figure.samples.end(), [](double x) { return x > 0; });
}

std::optional<MetricOfRecord> find_metric(const record::CaseRecord& record, const std::string& name) {
  if (auto phase = phase_figure(record, name))
    return MetricOfRecord{std::move(*phase), "ms", Direction::lower_is_better};
  if (auto rate = rate_of(record, name)) return rate;
  if (auto metric = step_metric_of(record, name)) return metric;
  if (name != "memory") return single_figure_of(record, name);
  // The peak of the whole case is for records without one of the steps: it has what algorithms were tried on, and so it
  // differs between a run that chose them and the next one.
  for (const char* column : {"memory.step_peak.max_mib", "memory.peak_mib"})
    if (auto peak = single_figure_of(record, column); peak && peak->figure.mean > 0) return peak;
  return single_figure_of(record, "memory.process_peak_mib");
}

template <class T>
void add_names(std::vector<std::string>& names, const std::optional<record::Named<T>>& group) {
  if (group)
    for (const auto& entry : *group) names.push_back(entry.first);
}

}  // namespace

std::string name_for_all(const std::vector<const record::CaseRecord*>& records, const std::string& metric) {
  const auto has = [](const record::CaseRecord& record, const char* column) {
    const auto found = single_figure_of(record, column);
    return found && found->figure.mean > 0;
  };
  bool some_tell_steps = false, some_do_not = false;
  for (const record::CaseRecord* record : records) {
    const bool tells_steps = has(*record, "memory.step_peak.max_mib");
    some_tell_steps |= tells_steps;
    some_do_not |= !tells_steps && has(*record, "memory.peak_mib");
  }
  const bool is_of_whole_cases = metric == "memory" && some_tell_steps && some_do_not;
  return is_of_whole_cases ? "memory.peak_mib" : metric;
}

std::optional<MetricOfRecord> metric_of(const record::CaseRecord& record, const std::string& name) {
  std::optional<MetricOfRecord> metric = find_metric(record, name);
  return metric && is_positive(metric->figure) ? metric : std::nullopt;
}

std::optional<double> figure_of(const record::CaseRecord& record, const std::string& name) {
  const std::optional<MetricOfRecord> metric = find_metric(record, name);
  return metric ? std::optional(metric->figure.mean) : std::nullopt;
}

std::optional<std::string> word_of(const record::CaseRecord& record, const std::string& name) {
  // An input of this name does not count: `optimizer` is a phase of one workload and a parameter of another.
  const record::CaseMetric* metric = record::find(record.result.metrics, name);
  if (!(metric && metric->word) && !record::is_text_column(name)) return std::nullopt;
  const record::Cell cell = record::cell_of(record, name);
  if (cell.empty() || cell.is_number()) return std::nullopt;
  std::string word = record::csv_text(cell);
  return word.empty() ? std::nullopt : std::optional(std::move(word));
}

std::vector<std::string> metric_names(const record::CaseRecord& record) {
  std::vector<std::string> names;
  add_names(names, record.result.phases);
  for (const char* rate : {"gflop_per_s", "gbytes_per_s", "items_per_s"})
    if (record.result.rates && !record::cell_of(record, rate).empty()) names.emplace_back(rate);
  add_names(names, record.result.step_metrics);
  add_names(names, record.result.metrics);
  if (metric_of(record, "memory")) names.emplace_back("memory");
  if (metric_of(record, "utilisation_percent")) names.emplace_back("utilisation_percent");
  return names;
}

std::string verdict_word(Outcome outcome, const std::string& metric, const MetricOfRecord& of_record) {
  if (outcome == Outcome::same) return "same";
  if (outcome == Outcome::differs) return "differs";
  if (outcome == Outcome::differs_in_tail) return "differs in its tail";
  if (outcome == Outcome::cannot_tell) return "cannot tell";
  if (of_record.figure.timed) return is_worse(outcome, of_record.better) ? "slower" : "faster";
  if (metric.starts_with("memory")) return outcome == Outcome::higher ? "more" : "less";
  if (of_record.better == Direction::neither) return outcome == Outcome::higher ? "higher" : "lower";
  return is_worse(outcome, of_record.better) ? "worse" : "better";
}

bool is_worse(Outcome outcome, Direction better) {
  return outcome == Outcome::differs_in_tail || (better == Direction::lower_is_better && outcome == Outcome::higher) ||
         (better == Direction::higher_is_better && outcome == Outcome::lower);
}

}  // namespace assay::host::compare
