#include "record/columns.hpp"

#include "common/memory_kinds.hpp"
#include "record/identity_columns.hpp"
#include "record/memory_columns.hpp"
#include "record/merge_telemetry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

namespace assay::host::record {
namespace {

using R = const CaseRecord&;

constexpr std::string_view memory_prefix = "memory.";
constexpr std::string_view telemetry_prefix = "telemetry.";
constexpr std::string_view setup_parts_prefix = "wall_s.setup.", verify_parts_prefix = "wall_s.verify.";

// ---- where values stand ----

// Divides by 1000, which unlike a multiplication by 0.001 rounds once.
Cell thousandth(const Number& number) { return number_cell(number ? Number(*number / 1000.0) : number); }

template <class T>
Cell integer_cell(const std::optional<T>& value) {
  return value ? count_cell(static_cast<std::int64_t>(*value)) : Cell{};
}

Cell stage_cell(R r) { return text_cell(r.result.stage ? name_of(*r.result.stage) : ""); }

Cell notes_cell(R r) {
  if (!r.result.notes || r.result.notes->empty()) return {};
  return text_cell(fmt::format("{}", fmt::join(*r.result.notes, "; ")));
}

// "power_cap 40%, thermal 5%" of the time; "none".
Cell throttle_cell(R r) {
  if (!r.result.telemetry || !r.result.telemetry->throttle) return {};
  std::vector<std::string> texts;
  for (const auto& [reason, share] : *r.result.telemetry->throttle)
    texts.push_back(fmt::format("{} {:.0f}%", reason, share * 100));
  return text_cell(texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
}

template <auto Member>
Cell of_telemetry(R r) {
  if (!r.result.telemetry) return {};
  const auto& value = (*r.result.telemetry).*Member;
  if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Number>)
    return number_cell(value);
  else
    return integer_cell(value);
}

Cell utilisation_cell(R r) {
  if (!r.result.telemetry) return {};
  const auto& gpu = r.result.telemetry->gpu_utilisation_percent;
  const auto& cpu = r.result.telemetry->cpu_utilisation_percent;
  return gpu ? number_cell(gpu->mean) : cpu ? number_cell(cpu->mean) : Cell{};
}

template <auto Member>
Cell of_rates(R r) {
  return r.result.rates ? number_cell((*r.result.rates).*Member) : Cell{};
}

template <auto Member>
Cell of_efficiency(R r) {
  return r.result.efficiency ? number_cell((*r.result.efficiency).*Member) : Cell{};
}
template <auto Member>
Cell of_peak(R r) {
  const bool is_told = r.result.efficiency && (*r.result.efficiency).*Member;
  return is_told ? text_cell(((*r.result.efficiency).*Member)->text) : Cell{};
}
template <auto Member>
Cell of_silent(R r) {
  return r.result.silent ? number_cell((*r.result.silent).*Member) : Cell{};
}

template <auto Member>
Cell of_memory(R r) {
  return r.result.memory ? number_cell((*r.result.memory).*Member) : Cell{};
}

template <double Figure::*Member>
Cell of_step_peak(R r) {
  return r.result.memory && r.result.memory->step_peak_mib ? number_cell((*r.result.memory->step_peak_mib).*Member)
                                                           : Cell{};
}

// Over the ranks.
std::vector<double> step_means(R r) {
  std::vector<double> means;
  for (const RankEntry& rank : r.result.by_rank)
    if (rank.step_mean_ms) means.push_back(*rank.step_mean_ms);
  return means;
}
Cell least_step_mean(R r) {
  const auto means = step_means(r);
  return means.empty() ? Cell{} : number_cell(*std::min_element(means.begin(), means.end()));
}
Cell largest_step_mean(R r) {
  const auto means = step_means(r);
  return means.empty() ? Cell{} : number_cell(*std::max_element(means.begin(), means.end()));
}

template <auto Member>
Cell of_phase(const Phase& phase) {
  return number_cell(phase.*Member);
}
template <auto Member>
Cell of_step_metric(const StepMetric& metric) {
  return number_cell(metric.*Member);
}
// The samples that are numbers: a loss that diverged leaves others.
std::vector<double> numbers_of(const StepMetric& metric) {
  std::vector<double> numbers;
  std::copy_if(metric.samples.begin(), metric.samples.end(), std::back_inserter(numbers),
               [](double v) { return std::isfinite(v); });
  return numbers;
}
Cell least_sample(const StepMetric& m) {
  const auto numbers = numbers_of(m);
  return numbers.empty() ? Cell{} : number_cell(*std::min_element(numbers.begin(), numbers.end()));
}
Cell largest_sample(const StepMetric& m) {
  const auto numbers = numbers_of(m);
  return numbers.empty() ? Cell{} : number_cell(*std::max_element(numbers.begin(), numbers.end()));
}
Cell last_sample(const StepMetric& m) {
  const auto numbers = numbers_of(m);
  return numbers.empty() ? Cell{} : number_cell(numbers.back());
}

// ---- the tables ----

constexpr Column text_column(std::string_view name, Cell (*cell)(R)) {
  Column column{name, cell};
  column.is_text = true;
  return column;
}

constexpr Direction lower = Direction::lower_is_better, higher = Direction::higher_is_better;

constexpr std::array first{
    text_column("status", [](R r) { return text_cell(r.result.status_text()); }),
    text_column("reason", [](R r) { return text_cell(r.result.reason); }),
    Column{"index",
           [](R r) {
             Cell cell = count_cell(r.identity.index);
             cell.verbatim = true;
             return cell;
           }},
    Column{"repeat",
           [](R r) {
             Cell cell = integer_cell(r.identity.repeat);
             cell.verbatim = true;
             return cell;
           }},
    text_column("hash", [](R r) { return text_cell(r.identity.hash); }),
    text_column("verify", [](R r) { return r.result.verify ? text_cell(name_of(r.result.verify->status)) : Cell{}; }),
    Column{"drift", [](R r) { return number_cell(r.result.drift); }},
    text_column("notes", notes_cell),
    text_column("device", [](R r) { return r.result.device ? text_cell(r.result.device->kind) : Cell{}; })};

constexpr std::array later{
    Column{"gflop_per_s", of_rates<&Rates::gflop_per_s>, "gflop/s", higher},
    Column{"tflop_per_s", [](R r) { return r.result.rates ? thousandth(r.result.rates->gflop_per_s) : Cell{}; },
           "tflop/s", higher},
    Column{"gbytes_per_s", of_rates<&Rates::gbytes_per_s>, "gbytes/s", higher},
    Column{"items_per_s", of_rates<&Rates::items_per_s>, "items/s", higher},
    Column{"mfu", of_efficiency<&Efficiency::mfu>, "", higher},
    Column{"bound_percent", of_efficiency<&Efficiency::bound_percent>, "%", higher},
    Column{"mfu_measured", of_efficiency<&Efficiency::mfu_measured>, "", higher},
    Column{"bound_percent_measured", of_efficiency<&Efficiency::bound_percent_measured>, "%", higher},
    text_column("peak.stated", of_peak<&Efficiency::stated>),
    text_column("peak.measured", of_peak<&Efficiency::measured>),
    Column{"j_per_item", of_efficiency<&Efficiency::j_per_item>, "J", lower},
    Column{"items_per_j", of_efficiency<&Efficiency::items_per_j>, "items/J", higher},
    Column{"communication_tax", of_silent<&SilentPass::communication_tax>, "", lower},
    Column{"silent_step_ms", of_silent<&SilentPass::step_mean_ms>, "ms", lower},
    Column{"memory.device_used_mib", of_memory<&Memory::device_used_mib>, "MiB", lower},
    Column{"memory.unexplained_mib", of_memory<&Memory::unexplained_mib>, "MiB", lower},
    Column{"memory.peak_mib", of_memory<&Memory::peak_total_mib>, "MiB", lower, true},
    Column{"memory.step_peak.mean_mib", of_step_peak<&Figure::mean>, "MiB", lower, true},
    Column{"memory.step_peak.min_mib", of_step_peak<&Figure::min>, "MiB", lower, true},
    Column{"memory.step_peak.max_mib", of_step_peak<&Figure::max>, "MiB", lower, true},
    Column{"memory.process_peak_mib", of_memory<&Memory::process_peak_mib>, "MiB", lower},
    text_column("memory_snapshot",
                [](R r) { return r.result.memory_snapshot.empty() ? Cell{} : text_cell(r.result.memory_snapshot); }),
    Column{"utilisation_percent", utilisation_cell},
    text_column("validity",
                [](R r) { return r.result.validity ? text_cell(name_of(r.result.validity->verdict)) : Cell{}; }),
    text_column("validity.text", [](R r) { return r.result.validity ? text_cell(r.result.validity->text) : Cell{}; }),
    Column{"telemetry.samples", of_telemetry<&Telemetry::samples>},
    Column{"telemetry.energy_j", of_telemetry<&Telemetry::energy_j>, "J"},
    Column{"telemetry.power_integral_j", of_telemetry<&Telemetry::power_integral_j>, "J"},
    text_column("telemetry.throttle", throttle_cell),
    Column{"telemetry.foreign_processes", of_telemetry<&Telemetry::foreign_processes>},
    Column{"telemetry.foreign_memory_mib", of_telemetry<&Telemetry::foreign_memory_mib>, "MiB"},
    Column{"telemetry.utilisation_span_s", of_telemetry<&Telemetry::utilisation_span_s>, "s"},
    text_column("sampling.rule", [](R r) { return r.result.sampling ? text_cell(r.result.sampling->rule) : Cell{}; }),
    text_column("sampling.mode", [](R r) { return r.result.sampling ? text_cell(r.result.sampling->mode) : Cell{}; }),
    Column{"sampling.inner", [](R r) { return r.result.sampling ? integer_cell(r.result.sampling->inner) : Cell{}; }},
    Column{"sampling.settling_steps",
           [](R r) { return r.result.sampling ? integer_cell(r.result.sampling->settling_steps) : Cell{}; }},
    Column{"sampling.unrecorded_steps",
           [](R r) { return r.result.sampling ? integer_cell(r.result.sampling->unrecorded_steps) : Cell{}; }},
    text_column(
        "sampling.cold",
        [](R r) { return r.result.sampling ? text_cell(r.result.sampling->is_cold ? "true" : "false") : Cell{}; }),
    Column{"sampling.instrument_us",
           [](R r) { return r.result.sampling ? number_cell(r.result.sampling->instrument_us) : Cell{}; }, "us", lower},
    text_column("device.name", [](R r) { return r.result.device ? text_cell(r.result.device->name) : Cell{}; }),
    text_column("stage", stage_cell),
    text_column("phase", [](R r) { return text_cell(r.result.phase); }),
    text_column("part", [](R r) { return text_cell(r.result.part); }),
    Column{"rank", [](R r) { return integer_cell(r.result.rank); }},
    text_column("workload", [](R r) { return text_cell(r.identity.workload); }),
    text_column("started", [](R r) { return text_cell(r.started); }),
    Column{"wall_s.case", [](R r) { return number_cell(r.result.wall.case_s); }, "s", lower},
    Column{"wall_s.load", [](R r) { return number_cell(r.result.wall.load_s); }, "s", lower},
    Column{"wall_s.create", [](R r) { return number_cell(r.result.wall.create_s); }, "s", lower},
    Column{"wall_s.setup", [](R r) { return number_cell(r.result.wall.setup_s); }, "s", lower},
    Column{"wall_s.warmup", [](R r) { return number_cell(r.result.wall.warmup_s); }, "s", lower},
    Column{"wall_s.measure", [](R r) { return number_cell(r.result.wall.measure_s); }, "s", lower},
    Column{"wall_s.finish", [](R r) { return number_cell(r.result.wall.finish_s); }, "s", lower},
    Column{"wall_s.verify", [](R r) { return number_cell(r.result.wall.verify_s); }, "s", lower},
    Column{"wall_s.repeat", [](R r) { return number_cell(r.result.wall.repeat_s); }, "s", lower},
    Column{"wall_s.peak", [](R r) { return number_cell(r.result.wall.peak_s); }, "s", lower},
    Column{"wall_s.destroy", [](R r) { return number_cell(r.result.wall.destroy_s); }, "s", lower},
    text_column("verify.refers_to",
                [](R r) {
                  const bool refers = r.result.verify && r.result.verify->refers_to;
                  return refers ? text_cell(text_of(*r.result.verify->refers_to)) : Cell{};
                }),
    Column{"ranks", [](R r) { return integer_cell(r.identity.ranks); }},
    Column{"copies", [](R r) { return integer_cell(r.result.copies); }},
    Column{"spread", [](R r) { return number_cell(r.result.spread); }},
    Column{"straggler.rank", [](R r) { return r.result.straggler ? count_cell(r.result.straggler->rank) : Cell{}; }},
    Column{"straggler.share", [](R r) { return r.result.straggler ? number_cell(r.result.straggler->share) : Cell{}; }},
    Column{"by_rank.step_mean_ms.min", least_step_mean, "ms", lower},
    Column{"by_rank.step_mean_ms.max", largest_step_mean, "ms", lower}};

constexpr std::array statistics_of_phases{
    PhaseStatistic{.name = "mean_ms", .cell = of_phase<&Phase::mean_ms>, .unit = "ms", .adds_up = true},
    PhaseStatistic{"std_ms", of_phase<&Phase::std_ms>, "ms"},
    PhaseStatistic{"cv", of_phase<&Phase::cv>},
    PhaseStatistic{"cv_percent", [](const Phase& p) { return number_cell(p.cv ? Number(*p.cv * 100.0) : p.cv); }},
    PhaseStatistic{"min_ms", of_phase<&Phase::min_ms>, "ms"},
    PhaseStatistic{"max_ms", of_phase<&Phase::max_ms>, "ms"},
    PhaseStatistic{"p50_ms", of_phase<&Phase::p50_ms>, "ms"},
    PhaseStatistic{"p90_ms", of_phase<&Phase::p90_ms>, "ms"},
    PhaseStatistic{"p95_ms", of_phase<&Phase::p95_ms>, "ms"},
    PhaseStatistic{"p99_ms", of_phase<&Phase::p99_ms>, "ms"},
    PhaseStatistic{"ci_low_ms", of_phase<&Phase::ci_low_ms>, "ms"},
    PhaseStatistic{"ci_high_ms", of_phase<&Phase::ci_high_ms>, "ms"},
    PhaseStatistic{
        .name = "mean_s", .cell = [](const Phase& p) { return thousandth(p.mean_ms); }, .unit = "s", .adds_up = true},
    PhaseStatistic{"std_s", [](const Phase& p) { return thousandth(p.std_ms); }, "s"},
    PhaseStatistic{.name = "host_mean_ms", .cell = of_phase<&Phase::host_mean_ms>, .unit = "ms", .adds_up = true},
    PhaseStatistic{.name = "share", .cell = of_phase<&Phase::share>, .adds_up = true},
    PhaseStatistic{"n", [](const Phase& p) { return count_cell(p.n); }},
    PhaseStatistic{"autocorrelation", of_phase<&Phase::autocorrelation>},
    PhaseStatistic{"effective_n", of_phase<&Phase::effective_n>},
    PhaseStatistic{"device_mean_ms", of_phase<&Phase::device_mean_ms>, "ms", true}};

constexpr std::array statistics_of_step_metrics{
    StepMetricStatistic{"mean", of_step_metric<&StepMetric::mean>},
    StepMetricStatistic{"std", of_step_metric<&StepMetric::std>}, StepMetricStatistic{"min", least_sample},
    StepMetricStatistic{"max", largest_sample}, StepMetricStatistic{"last", last_sample}};

struct FigureStatistic {
  std::string_view name;
  double Figure::*member;
};
constexpr std::array figure_statistics{FigureStatistic{"mean", &Figure::mean}, FigureStatistic{"min", &Figure::min},
                                       FigureStatistic{"max", &Figure::max}};

template <class Rows>
auto* row_named(const Rows& rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [name](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

// "optimizer+parameter_wait" -> "optimizer", "parameter_wait".
std::vector<std::string_view> summands_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// ---- families of columns ----

// `column` without its "telemetry.".
ColumnValue figure_value(R r, std::string_view column) {
  const DottedName name = split_last(column);
  const auto* statistic = row_named(figure_statistics, name.tail);
  for (const TelemetryFigure& figure : telemetry_figures)
    if (statistic && figure.name == name.head) {
      const bool is_told = r.result.telemetry && (*r.result.telemetry).*figure.member;
      return {is_told ? number_cell((*((*r.result.telemetry).*figure.member)).*statistic->member) : Cell{},
              figure.unit};
    }
  return {};
}

// "wall_s.verify.operations"
Cell part_cell(const Named<double>& parts, std::string_view column) {
  const double* seconds = find(parts, split_last(column).tail);
  return seconds ? number_cell(*seconds) : Cell{};
}

const Value* input_named(R r, std::string_view name) {
  // A parameter before the axis of its name: what "auto" means on the case's device.
  for (const Named<Value>* group : {&r.identity.params, &r.identity.axes, &r.identity.settings})
    if (const Value* value = find(*group, name)) return value;
  return nullptr;
}

ColumnValue case_metric_value(const CaseMetric& metric) {
  ColumnValue found{{}, metric.unit, metric.direction};
  // A count or a sum is computed, not measured: neither direction of these is better.
  found.exact = metric.direction == Direction::neither;
  if (metric.word) {
    found.cell = text_cell(*metric.word);
    return found;
  }
  const Value value = value_of(metric);
  found.cell =
      std::holds_alternative<double>(value) ? number_cell(metric.value) : count_cell(std::get<std::int64_t>(value));
  // A pure number without a better direction (a loss, a sum) is what was computed, not how fast.
  if (metric.unit.empty() && found.exact) found.cell.digits = result_digits;
  return found;
}

// "j_per_token", of "tokens".
std::string energy_per_item_name(std::string_view item_unit) {
  if (item_unit.ends_with('s')) item_unit.remove_suffix(1);
  return fmt::format("j_per_{}", item_unit);
}

std::string item_rate_name(R r) {
  return r.result.work && !r.result.work->item_unit.empty() ? r.result.work->item_unit + "_per_s" : std::string();
}

// The sum over several phases of a figure that adds up. A phase that no step of the case had took no time; a case that
// had none of them has no sum.
ColumnValue sum_of_phases(R r, std::string_view phases, const PhaseStatistic& statistic) {
  std::optional<double> sum;
  for (const std::string_view name : summands_of(phases))
    if (const Phase* phase = find(r.result.phases, name))
      if (const std::optional<double> number = statistic.cell(*phase).number()) sum = sum.value_or(0) + *number;
  return {number_cell(sum), std::string(statistic.unit), statistic.unit.empty() ? Direction::neither : lower};
}

ColumnValue measured_value(R r, std::string_view column) {
  if (const CaseMetric* metric = find(r.result.metrics, column)) return case_metric_value(*metric);
  const DottedName name = split_last(column);
  if (const auto* statistic = row_named(statistics_of_step_metrics, name.tail))
    if (const StepMetric* metric = find(r.result.step_metrics, name.head))
      return {statistic->cell(*metric), metric->unit, metric->direction};
  if (const auto* statistic = row_named(statistics_of_phases, name.tail)) {
    if (const Phase* phase = find(r.result.phases, name.head))
      return {statistic->cell(*phase), std::string(statistic->unit),
              statistic->unit.empty() ? Direction::neither : lower};
    if (statistic->adds_up && name.head.find('+') != std::string_view::npos)
      return sum_of_phases(r, name.head, *statistic);
  }
  if (const Column* row = row_named(later, column))
    return {row->cell(r), std::string(row->unit), row->direction, row->exact};
  if (const Column* row = row_named(identity_columns(), column)) return {row->cell(r)};
  if (is_file_column(column)) return {file_cell(r, column)};
  if (column == item_rate_name(r)) return value_of(r, "items_per_s");
  if (r.result.work && !r.result.work->item_unit.empty()) {
    if (column == energy_per_item_name(r.result.work->item_unit)) return value_of(r, "j_per_item");
    if (column == r.result.work->item_unit + "_per_j") return value_of(r, "items_per_j");
  }
  if (column.starts_with(memory_prefix))
    return {memory_cell(r, column.substr(memory_prefix.size())), "MiB", lower, true};
  const WallTimes& wall = r.result.wall;
  if (column.starts_with(setup_parts_prefix)) return {part_cell(wall.setup_parts_s, column), "s", lower};
  if (column.starts_with(verify_parts_prefix)) return {part_cell(wall.verify_parts_s, column), "s", lower};
  if (column.starts_with(telemetry_prefix)) return figure_value(r, column.substr(telemetry_prefix.size()));
  return {};
}

// Are all of "a+b" phases, and does the statistic add up? `is_named` knows "a.mean_ms".
template <class IsNamed>
bool is_sum_of_phases(std::string_view phases, std::string_view statistic, const IsNamed& is_named) {
  const auto* row = row_named(statistics_of_phases, statistic);
  const std::vector<std::string_view> parts = summands_of(phases);
  // Each once, and the step is no part of itself.
  const std::set<std::string_view> different(parts.begin(), parts.end());
  if (different.size() < parts.size() || different.contains("step")) return false;
  return row && row->adds_up && std::all_of(parts.begin(), parts.end(), [&](std::string_view phase) {
           return is_named(fmt::format("{}.{}", phase, statistic));
         });
}

}  // namespace

std::span<const Column> first_columns() { return first; }
std::span<const Column> later_columns() { return later; }
std::span<const PhaseStatistic> phase_statistics() { return statistics_of_phases; }
std::span<const StepMetricStatistic> step_metric_statistics() { return statistics_of_step_metrics; }

bool is_text_column(std::string_view column) {
  const Column* row = row_named(first, column);
  if (!row) row = row_named(later, column);
  if (!row) row = row_named(identity_columns(), column);
  return (row && row->is_text) || is_file_column(column);
}

std::optional<std::string_view> column_of_ratio(std::string_view column) {
  constexpr std::string_view suffix = ".ratio";
  if (!column.ends_with(suffix) || column.size() == suffix.size()) return std::nullopt;
  return column.substr(0, column.size() - suffix.size());
}

ColumnValue value_of(const CaseRecord& record, std::string_view column) {
  if (const Column* row = row_named(first, column)) return {row->cell(record), std::string(row->unit), row->direction};
  if (const Value* input = input_named(record, column)) return {input_cell(*input), "", Direction::neither};
  return measured_value(record, column);
}

Cell cell_of(const CaseRecord& record, std::string_view column) { return value_of(record, column).cell; }

std::vector<std::string> column_names(const WorkloadNames& workload) {
  std::vector<std::string> names;
  const auto add_all = [&names](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  for (const Column& column : first) names.emplace_back(column.name);
  add_all(workload.params);
  add_all(workload.settings);
  add_all(workload.case_metrics);
  for (const std::string& metric : workload.step_metrics)
    for (const StepMetricStatistic& statistic : statistics_of_step_metrics)
      names.push_back(fmt::format("{}.{}", metric, statistic.name));
  std::vector<std::string> phases{"step"};
  phases.insert(phases.end(), workload.phases.begin(), workload.phases.end());
  for (const std::string& phase : phases)
    for (const PhaseStatistic& statistic : statistics_of_phases)
      if (!statistic.of_step_alone || phase == "step") names.push_back(fmt::format("{}.{}", phase, statistic.name));
  if (!workload.item_unit.empty()) {
    names.push_back(workload.item_unit + "_per_s");
    names.push_back(energy_per_item_name(workload.item_unit));
    names.push_back(workload.item_unit + "_per_j");
  }
  for (const Column& column : later) names.emplace_back(column.name);
  for (const Column& column : identity_columns()) names.emplace_back(column.name);
  for (std::size_t kind = 0; kind < memory_kind_count; ++kind)
    names.push_back(fmt::format("memory.{}.peak_mib", memory_kind_name(kind)));
  for (const TelemetryFigure& figure : telemetry_figures)
    for (const FigureStatistic& statistic : figure_statistics)
      names.push_back(fmt::format("telemetry.{}.{}", figure.name, statistic.name));
  return names;
}

bool is_column(std::string_view column, const std::vector<std::string>& names) {
  const auto is_named = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_named(column) || is_file_column(column)) return true;
  for (const std::string_view prefix : {setup_parts_prefix, verify_parts_prefix})
    if (column.starts_with(prefix)) return column.size() > prefix.size();
  if (const DottedName name = split_last(column); name.head.find('+') != std::string_view::npos)
    return is_sum_of_phases(name.head, name.tail, is_named);
  return column.starts_with(memory_prefix) && is_memory_column(column.substr(memory_prefix.size()));
}

}  // namespace assay::host::record
