#include "compare/metric.hpp"

#include "results/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace assay::host {
namespace {

const Record& at(const Record& json, const std::string& key) {
  static const Record kNull;
  if (!json.is_object()) return kNull;
  const auto it = json.find(key);
  return it == json.end() ? kNull : *it;
}

std::optional<double> number(const Record& json) {
  return json.is_number() && std::isfinite(json.get<double>()) ? std::optional(json.get<double>()) : std::nullopt;
}

std::vector<double> numbers(const Record& array) {
  std::vector<double> result;
  if (array.is_array())
    for (const Record& element : array)
      if (const auto value = number(element)) result.push_back(*value);
  return result;
}

std::string text(const Record& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

bool is_gpu(const Record& record) { return text(at(at(record, "device"), "kind")) != "cpu"; }

// Of the time that the threads wanted to run, they waited for other processes, or the hypervisor ran another guest. On
// a device of its own the processors matter little.
double waited_share(const Record& record) {
  if (is_gpu(record)) return 0;
  const Record& contention = at(record, "contention");
  const auto wait = number(at(contention, "wait_share")), others = number(at(contention, "others_share"));
  return (wait ? *wait : others.value_or(0)) + number(at(contention, "steal_share")).value_or(0);
}

std::optional<RunFigure> phase_figure(const Record& record, const std::string& name) {
  const Record& phase = at(at(record, "phases"), name);
  const auto mean = number(at(phase, "mean_ms"));
  RunFigure figure;
  figure.samples = numbers(at(phase, "samples_ms"));
  if (!mean && figure.samples.empty()) return std::nullopt;
  figure.mean = mean ? *mean : location(figure.samples, Statistic::mean);
  figure.std = number(at(phase, "std_ms"));
  if (const auto n = number(at(phase, "n"))) figure.n = static_cast<std::size_t>(*n);
  figure.timed = true;
  figure.waited_share = waited_share(record);
  figure.shared_device = is_gpu(record) && text(at(at(record, "validity"), "verdict")) == "contended";
  return figure;
}

// A rate is a step's work over its time: its samples are those of the step.
std::optional<MetricOfRecord> rate_of(const Record& record, const std::string& name) {
  constexpr std::string_view kPerSecond = "_per_s";
  if (!name.ends_with(kPerSecond)) return std::nullopt;
  const auto rate = number(cell_of(record, name).value);
  std::optional<RunFigure> step = phase_figure(record, "step");
  if (!rate || !step) return std::nullopt;
  step->scale = *rate * step->mean;
  std::string unit = name.substr(0, name.size() - kPerSecond.size());
  if (const std::string items = text(at(at(record, "work"), "item_unit")); unit == "items" && !items.empty())
    unit = items;
  return MetricOfRecord{*step, fmt::format("{}/s", unit), Better::higher};
}

Better better_of(const Record& direction) {
  const auto value = number(direction);
  if (!value || *value == 0) return Better::neither;
  return *value > 0 ? Better::higher : Better::lower;
}

std::optional<MetricOfRecord> step_metric_of(const Record& record, const std::string& name) {
  const Record& metric = at(at(record, "step_metrics"), name);
  const auto mean = number(at(metric, "mean"));
  if (!mean) return std::nullopt;
  RunFigure figure;
  figure.mean = *mean;
  figure.std = number(at(metric, "std"));
  figure.samples = numbers(at(metric, "samples"));
  if (const auto n = number(at(metric, "n"))) figure.n = static_cast<std::size_t>(*n);
  return MetricOfRecord{std::move(figure), text(at(metric, "unit")), better_of(at(metric, "direction"))};
}

// By its name, as docs/record.md has them; "" for what is no amount of memory or time.
std::string unit_of_column(std::string_view name) {
  if (name.starts_with("memory.")) return {"MiB"};
  if (name.ends_with("_ms")) return {"ms"};
  return {name.starts_with("wall_s.") || name.ends_with("_s") ? "s" : ""};
}

std::optional<MetricOfRecord> single_figure_of(const Record& record, const std::string& name) {
  const Cell cell = cell_of(record, name);
  const auto value = number(cell.value);
  if (!value) return std::nullopt;
  MetricOfRecord result;
  result.figure.mean = *value;
  // The account of memory is kept to the byte; what the system says of a process is not.
  result.figure.exact = name.starts_with("memory.") && name != "memory.process_peak_mib";
  if (const Record& metric = at(at(record, "metrics"), name); !metric.is_null()) {
    result.unit = text(at(metric, "unit"));
    result.better = better_of(at(metric, "direction"));
    // A count or a sum is computed, not measured: of these neither direction is better.
    result.figure.exact = result.better == Better::neither;
  } else {
    result.unit = unit_of_column(name);
    if (result.unit.empty()) result.better = Better::neither;
  }
  return result;
}

bool is_positive(const RunFigure& figure) {
  return figure.mean > 0 && std::all_of(figure.samples.begin(), figure.samples.end(), [](double x) { return x > 0; });
}

std::optional<MetricOfRecord> find(const Record& record, const std::string& name) {
  if (auto phase = phase_figure(record, name)) return MetricOfRecord{std::move(*phase), "ms", Better::lower};
  if (auto rate = rate_of(record, name)) return rate;
  if (auto metric = step_metric_of(record, name)) return metric;
  if (name != "memory") return single_figure_of(record, name);
  if (auto peak = single_figure_of(record, "memory.peak_mib"); peak && peak->figure.mean > 0) return peak;
  return single_figure_of(record, "memory.process_peak_mib");
}

}  // namespace

std::optional<MetricOfRecord> metric_of(const Record& record, const std::string& name) {
  std::optional<MetricOfRecord> metric = find(record, name);
  return metric && is_positive(metric->figure) ? metric : std::nullopt;
}

std::vector<std::string> metric_names(const Record& record) {
  std::vector<std::string> names;
  for (const char* group : {"phases", "rates", "step_metrics", "metrics"})
    if (const Record& found = at(record, group); found.is_object())
      for (const auto& item : found.items()) names.push_back(item.key());
  if (metric_of(record, "memory")) names.emplace_back("memory");
  return names;
}

std::string verdict_word(Outcome outcome, const std::string& metric, const MetricOfRecord& of_record) {
  if (outcome == Outcome::same) return "same";
  if (outcome == Outcome::cannot_tell) return "cannot tell";
  if (of_record.figure.timed) return is_worse(outcome, of_record.better) ? "slower" : "faster";
  if (metric.starts_with("memory")) return outcome == Outcome::higher ? "more" : "less";
  if (of_record.better == Better::neither) return outcome == Outcome::higher ? "higher" : "lower";
  return is_worse(outcome, of_record.better) ? "worse" : "better";
}

bool is_worse(Outcome outcome, Better better) {
  return (better == Better::lower && outcome == Outcome::higher) ||
         (better == Better::higher && outcome == Outcome::lower);
}

}  // namespace assay::host
