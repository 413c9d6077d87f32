#include "results/default_columns.hpp"

#include "experiment/experiment.hpp"
#include "record/columns.hpp"

#include <algorithm>
#include <set>

namespace assay::host::results {
namespace {

bool is_of_several_ranks(const record::CaseRecord& record) { return record.identity.ranks.value_or(1) != 1; }

// "all" and "auto" say no number, and each record has the one that they became.
bool hides_the_number(const record::CaseRecord& record) {
  const Value* const axis = record::find(record.identity.axes, record::ranks_axis);
  return axis && record.identity.ranks && *axis != Value(std::int64_t{*record.identity.ranks});
}

bool has_phases(const record::CaseRecord& record) {
  return record.result.phases && std::any_of(record.result.phases->begin(), record.result.phases->end(),
                                             [](const auto& phase) { return phase.first != "step"; });
}

class Columns {
 public:
  explicit Columns(const std::vector<record::CaseRecord>& records) : records_(records) {}

  void add(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }
  // Asks the records once for each name: what none of them has would otherwise be looked for in all, for each of them.
  void add_if_any(const std::string& name) {
    if (!asked_.insert(name).second) return;
    if (any([&name](const record::CaseRecord& r) { return !record::cell_of(r, name).empty(); })) add(name);
  }
  template <class Predicate>
  bool any(Predicate predicate) const {
    return std::any_of(records_.begin(), records_.end(), predicate);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  const std::vector<record::CaseRecord>& records_;
  std::vector<std::string> names_;
  std::set<std::string> asked_;
};

// The axes of the sweep, then those of records whose experiment has changed since.
std::vector<std::string> axes_in_order(const experiment::Experiment& experiment,
                                       const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> axes;
  const auto add = [&axes](const std::string& key) {
    if (std::find(axes.begin(), axes.end(), key) == axes.end()) axes.push_back(key);
  };
  for (const experiment::Case& c : experiment.cases)
    for (const auto& axis : c.axes) add(axis.first);
  for (const record::CaseRecord& r : records)
    for (const auto& axis : r.identity.axes) add(axis.first);
  return axes;
}

// An axis with one value distinguishes no rows.
bool tells_rows_apart(const std::string& axis, const std::vector<record::CaseRecord>& records) {
  return std::any_of(records.begin(), records.end(), [&](const record::CaseRecord& r) {
    return record::cell_of(r, axis) != record::cell_of(records.front(), axis);
  });
}

bool names(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

bool is_relative(const std::string& column) {
  return column == record::speedup_column || record::column_of_ratio(column).has_value();
}

// Behind the time that it is made of, or else before the status.
void add_speedup(std::vector<std::string>& columns) {
  auto place = std::find(columns.begin(), columns.end(), "step.mean_ms");
  if (place == columns.end())
    place = std::find(columns.begin(), columns.end(), "status");
  else
    ++place;
  columns.insert(place, std::string(record::speedup_column));
}

// What the steps hold, where all cases report it: the peak of the whole case also has what algorithms were tried on,
// and is another one when they have been chosen before.
const char* memory_column(const Columns& columns) {
  const auto has = [](const record::CaseRecord& r, const char* name) {
    return r.result.is_ok() && record::cell_of(r, name).number().value_or(0) > 0;
  };
  if (!columns.any([&](const record::CaseRecord& r) { return has(r, "memory.peak_mib"); }))
    return "memory.process_peak_mib";
  const bool leaves_out = columns.any(
      [&](const record::CaseRecord& r) { return has(r, "memory.peak_mib") && !has(r, "memory.step_peak.max_mib"); });
  return leaves_out ? "memory.peak_mib" : "memory.step_peak.max_mib";
}

}  // namespace

std::vector<std::string> default_columns(const experiment::Experiment& experiment,
                                         const std::vector<record::CaseRecord>& records) {
  Columns columns(records);
  const bool shows_number = columns.any(hides_the_number);
  const auto name_of = [shows_number](const std::string& axis) {
    return shows_number && axis == record::ranks_axis ? "ranks" : axis;
  };
  for (const experiment::Case& c : experiment.cases)
    for (const auto& axis : c.axes) columns.add(name_of(axis.first));
  for (const record::CaseRecord& r : records)  // of runs whose experiment has changed since
    for (const auto& axis : r.identity.axes) columns.add_if_any(name_of(axis.first));
  columns.add_if_any("repeat");
  if (columns.any([](const record::CaseRecord& r) {
        return is_of_several_ranks(r) && !record::find(r.identity.axes, record::ranks_axis);
      }))
    columns.add("ranks");
  columns.add_if_any("copies");
  // What is asked first of a measurement comes first, since a narrow terminal shows the beginning.
  columns.add_if_any("step.mean_ms");
  columns.add_if_any("step.std_ms");
  if (!columns.any(has_phases)) columns.add_if_any("step.cv_percent");
  for (const record::CaseRecord& r : records)
    if (r.result.work) columns.add_if_any(r.result.work->item_unit + "_per_s");
  columns.add_if_any("communication_tax");
  columns.add_if_any(memory_column(columns));
  for (const record::CaseRecord& r : records)
    if (r.result.metrics)
      for (const auto& metric : *r.result.metrics) columns.add_if_any(metric.first);
  // A workload that reports a figure of the case by the same name has chosen which statistic of the steps it is.
  for (const record::CaseRecord& r : records)
    if (r.result.step_metrics)
      for (const auto& metric : *r.result.step_metrics)
        if (!record::find(r.result.metrics, metric.first)) columns.add_if_any(metric.first + ".mean");
  for (const record::CaseRecord& r : records)
    if (r.result.phases)
      for (const auto& phase : *r.result.phases)
        if (phase.first != "step") columns.add_if_any(phase.first + ".mean_ms");
  // What a figure is worth. A record without a verification, as of another program, does not count as a right result:
  // its cell is empty.
  columns.add_if_any("validity");
  if (columns.any([](const record::CaseRecord& r) { return r.result.is_ok() || r.result.verify; }))
    columns.add("verify");
  columns.add_if_any("device");
  columns.add("status");
  return columns.take();
}

std::vector<std::string> table_columns(const experiment::Experiment& experiment,
                                       const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> named = experiment.output.columns;
  if (named.empty()) named = default_columns(experiment, records);
  std::vector<std::string> columns;
  for (const std::string& axis : axes_in_order(experiment, records)) {
    const bool is_told = names(named, axis) || (axis == record::ranks_axis && names(named, "ranks"));
    if (!is_told && tells_rows_apart(axis, records)) columns.push_back(axis);
  }
  if (!records.empty() && !names(named, "repeat") && tells_rows_apart("repeat", records)) columns.push_back("repeat");
  columns.insert(columns.end(), named.begin(), named.end());
  if (!experiment.output.relative_to.empty() && std::none_of(columns.begin(), columns.end(), is_relative))
    add_speedup(columns);
  return columns;
}

}  // namespace assay::host::results
