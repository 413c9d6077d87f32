#include "results/columns.hpp"

#include "common/memory_kinds.hpp"
#include "experiment/column_names.hpp"
#include "experiment/experiment.hpp"
#include "results/text_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::host {
namespace {

// The value at a chain of keys, or null.
const Record& at(const Record& json, std::string_view key) {
  static const Record kNull;
  if (!json.is_object()) return kNull;
  const auto it = json.find(std::string(key));
  return it == json.end() ? kNull : *it;
}
template <class... Key>
const Record& at(const Record& json, std::string_view first, std::string_view second, Key... rest) {
  return at(at(json, first), second, rest...);
}

// Divides by 1000, which unlike a multiplication by 0.001 rounds once.
Record thousandth(const Record& number) {
  return number.is_number() ? Record(number.get<double>() / 1000.0) : Record();
}

// A count that crossed the plugin's border as a double is a count again.
Record whole_if_exact(const Record& number) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  if (!number.is_number_float()) return number;
  const double value = number.get<double>();
  if (std::trunc(value) != value || std::abs(value) >= kExactBelow) return number;
  return static_cast<std::int64_t>(value);
}

struct DottedName {
  std::string_view head, tail;
};
// Splits at the last dot.
std::optional<DottedName> split_last(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  return DottedName{name.substr(0, dot), name.substr(dot + 1)};
}

Record core_value(const Record& record, std::string_view column) {
  if (column == "verify") return at(record, "verify", "status");
  if (column == "device") return at(record, "device", "kind");
  if (column != "notes") return at(record, column);
  std::vector<std::string> texts;
  for (const Record& note : at(record, "notes"))
    if (note.is_string()) texts.push_back(note.get<std::string>());
  return texts.empty() ? Record() : Record(fmt::format("{}", fmt::join(texts, "; ")));
}

Record step_metric_value(const Record& metric, std::string_view statistic) {
  if (statistic == "mean" || statistic == "std") return at(metric, statistic);
  std::vector<double> samples;
  for (const Record& sample : at(metric, "samples"))
    if (sample.is_number()) samples.push_back(sample.get<double>());
  if (samples.empty()) return {};
  if (statistic == "min") return *std::min_element(samples.begin(), samples.end());
  if (statistic == "max") return *std::max_element(samples.begin(), samples.end());
  return statistic == "last" ? Record(samples.back()) : Record();
}

Record phase_value(const Record& phase, std::string_view statistic) {
  if (statistic == "cv_percent") {
    const Record& cv = at(phase, "cv");
    return cv.is_number() ? Record(cv.get<double>() * 100.0) : Record();
  }
  if (statistic == "mean_s") return thousandth(at(phase, "mean_ms"));
  if (statistic == "std_s") return thousandth(at(phase, "std_ms"));
  const Record& value = at(phase, statistic);
  return value.is_number() ? value : Record();  // not the raw samples
}

Record rate_value(const Record& record, std::string_view column) {
  if (column == "tflop_per_s") return thousandth(at(record, "rates", "gflop_per_s"));
  if (is_one_of(column, rate_columns)) return at(record, "rates", column);
  const Record& unit = at(record, "work", "item_unit");
  if (unit.is_string() && !unit.get_ref<const std::string&>().empty() && column == unit.get<std::string>() + "_per_s")
    return at(record, "rates", "items_per_s");
  return {};
}

// A moment that occurred several times: the last.
const Record& moment_named(const Record& record, std::string_view name) {
  static const Record kNull;
  const Record* found = &kNull;
  for (const Record& moment : at(record, "memory", "moments"))
    if (at(moment, "name") == Record(std::string(name))) found = &moment;
  return *found;
}

// The amount of a kind. Records leave out kinds of which nothing was held: where the account stands, that is 0.
Record amount_of(const Record& amounts, std::string_view kind) {
  const Record& amount = at(amounts, kind);
  if (!amount.is_null() || !amounts.is_object()) return amount;
  for (std::size_t i = 0; i < memory_kind_count; ++i)
    if (kind == memory_kind_name(i)) return 0.0;
  return {};
}

// `column` without its "memory.".
Record memory_value(const Record& record, std::string_view column) {
  if (column == "peak_mib") return at(record, "memory", "peak_total_mib");
  if (column == "process_peak_mib") return at(record, "memory", "process_peak_mib");
  const std::optional<DottedName> name = split_last(column);
  if (!name || (name->tail != "mib" && name->tail != "peak_mib")) return {};
  const bool peak = name->tail == "peak_mib";
  if (const Record& moment = moment_named(record, name->head); !moment.is_null())
    return at(moment, peak ? "peak_total_mib" : "current_total_mib");
  if (const std::optional<DottedName> of_kind = split_last(name->head))
    return amount_of(at(moment_named(record, of_kind->head), peak ? "peak_mib" : "current_mib"), of_kind->tail);
  return peak ? amount_of(at(record, "memory", "peak_mib"), name->head) : Record();
}

// "wall_s.setup": the value of `setup` in `wall_s`.
Record value_at_path(const Record& record, std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? at(record, path) : at(record, path.substr(0, dot), path.substr(dot + 1));
}

// `by_rank.<figure>.min` and `.max` are over the ranks, the others stand in the record as they are.
Record rank_value(const Record& record, std::string_view column) {
  constexpr std::string_view kEachRank = "by_rank.";
  if (!column.starts_with(kEachRank)) return value_at_path(record, column);
  const DottedName name = *split_last(column.substr(kEachRank.size()));
  std::vector<double> values;
  for (const Record& rank : at(record, "by_rank"))
    if (const Record& value = at(rank, name.head); value.is_number()) values.push_back(value.get<double>());
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return name.tail == "min" ? *least : *most;
}

// Of a case: the word, where its metric is one of some words.
Record case_metric_value(const Record& metric) {
  const Record& word = at(metric, "word");
  return word.is_string() ? word : whole_if_exact(at(metric, "value"));
}

// A pure number of which neither direction is better (a loss, a sum) is what was computed, not how fast.
bool is_computed_result(const Record& metric) { return at(metric, "unit") == "" && at(metric, "direction") == 0; }

// "power_cap 40%, thermal 5%" of the samples; "none".
Record throttle_text(const Record& shares) {
  if (!shares.is_object()) return {};
  std::vector<std::string> texts;
  for (const auto& [reason, share] : shares.items())
    if (share.is_number()) texts.push_back(fmt::format("{} {:.0f}%", reason, share.get<double>() * 100));
  return texts.empty() ? Record("none") : Record(fmt::format("{}", fmt::join(texts, ", ")));
}

constexpr std::string_view telemetry_prefix = "telemetry.";

Record telemetry_value(const Record& record, std::string_view column) {
  if (column == "validity") return at(record, "validity", "verdict");
  if (column == "telemetry.throttle") return throttle_text(at(record, "telemetry", "throttle"));
  if (column == "utilisation_percent") {
    const Record& of_gpu = at(record, "telemetry", "gpu_utilisation_percent", "mean");
    return of_gpu.is_null() ? at(record, "telemetry", "cpu_utilisation_percent", "mean") : of_gpu;
  }
  if (!column.starts_with(telemetry_prefix)) return value_at_path(record, column);
  const std::string_view figure = column.substr(telemetry_prefix.size());
  const std::optional<DottedName> name = split_last(figure);
  return name ? at(record, "telemetry", name->head, name->tail) : at(record, "telemetry", figure);
}

Record measured_value(const Record& record, std::string_view column) {
  if (const Record& metric = at(record, "metrics", column); !metric.is_null()) return case_metric_value(metric);
  if (const std::optional<DottedName> name = split_last(column)) {
    if (is_one_of(name->tail, step_metric_statistics))
      if (const Record& metric = at(record, "step_metrics", name->head); !metric.is_null())
        return step_metric_value(metric, name->tail);
    if (Record value = phase_value(at(record, "phases", name->head), name->tail); !value.is_null()) return value;
  }
  if (Record rate = rate_value(record, column); !rate.is_null()) return rate;
  if (column.starts_with("memory.")) return memory_value(record, column.substr(7));
  if (is_one_of(column, telemetry_columns) || column.starts_with(telemetry_prefix))
    return telemetry_value(record, column);
  if (is_one_of(column, rank_columns)) return rank_value(record, column);
  return is_one_of(column, place_columns) ? value_at_path(record, column) : Record();
}

// Several processes, and no axis that shows their number already.
bool has_untold_ranks(const Record& record) {
  const Record& ranks = at(record, "ranks");
  return ranks.is_number() && ranks != 1 && at(record, "axes", "run.ranks") != ranks;
}

}  // namespace

Cell cell_of(const Record& record, std::string_view column) {
  Cell cell;
  if (is_one_of(column, core_columns)) {
    cell.value = core_value(record, column);
    cell.verbatim = column == "index";
  } else {
    for (const char* group : {"axes", "params", "settings"})
      if (const Record& input = at(record, group, column); !input.is_null()) {
        cell.value = input;
        cell.verbatim = true;
        break;
      }
    if (cell.empty()) {
      cell.value = measured_value(record, column);
      if (is_computed_result(at(record, "metrics", column))) cell.digits = result_digits;
    }
  }
  // A number that is none has no place in a table of figures; JSON spells it null.
  if (cell.value.is_number_float() && !std::isfinite(cell.value.get<double>())) cell.value = nullptr;
  if (cell.value.is_structured()) cell.value = nullptr;
  return cell;
}

std::string csv_text(const Cell& cell) {
  if (cell.empty()) return {};
  return cell.value.is_string() ? cell.value.get<std::string>() : cell.value.dump();
}

std::string display_text(const Cell& cell) {
  if (cell.empty()) return {};
  if (cell.value.is_string()) return one_line(cell.value.get_ref<const std::string&>());
  if (cell.verbatim && cell.value.is_number_float()) return fmt::format("{}", cell.value.get<double>());
  if (cell.verbatim || cell.value.is_boolean()) return cell.value.dump();
  return cell.value.is_number_integer() ? group_thousands(cell.value.dump())
                                        : significant_digits(cell.value.get<double>(), cell.digits);
}

std::vector<std::string> default_columns(const Experiment& experiment, const std::vector<Record>& records) {
  std::vector<std::string> columns;
  const auto add = [&columns](std::string name) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(std::move(name));
  };
  const auto has_value = [&records](const std::string& column) {
    return std::any_of(records.begin(), records.end(),
                       [&column](const Record& record) { return !cell_of(record, column).empty(); });
  };
  const auto add_if_any = [&](const std::string& name) {
    if (has_value(name)) add(name);
  };
  const auto add_keys = [&](const char* group, const char* suffix, std::string_view except) {
    for (const Record& record : records)
      for (const auto& item : at(record, group).items())
        if (item.key() != except) add_if_any(item.key() + suffix);
  };

  for (const Case& c : experiment.cases)
    for (const auto& axis : c.axes) add(axis.first);
  add_keys("axes", "", "");  // of runs whose experiment has changed since
  if (std::any_of(records.begin(), records.end(), has_untold_ranks)) add("ranks");
  add_keys("metrics", "", "");
  const std::size_t before_phases = columns.size();
  add_keys("phases", ".mean_ms", "step");
  const bool step_alone = columns.size() == before_phases;
  add_if_any("step.mean_ms");
  add_if_any("step.std_ms");
  if (step_alone) add_if_any("step.cv_percent");
  for (const Record& record : records)
    if (const Record& unit = at(record, "work", "item_unit"); unit.is_string())
      add_if_any(unit.get<std::string>() + "_per_s");
  const bool accounted = std::any_of(records.begin(), records.end(), [](const Record& record) {
    const Cell peak = cell_of(record, "memory.peak_mib");
    return peak.is_number() && peak.value.get<double>() > 0;
  });
  add_if_any(accounted ? "memory.peak_mib" : "memory.process_peak_mib");
  add("status");
  return columns;
}

}  // namespace assay::host
