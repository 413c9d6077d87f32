#include "results/baselines.hpp"

#include "record/columns.hpp"

namespace assay::host::results {

Baselines::Baselines(const std::vector<record::CaseRecord>& records, const record::Named<Value>& relative_to)
    : relative_to_(relative_to) {
  if (relative_to.empty()) return;
  for (const record::CaseRecord& record : records)
    if (!record.is_former) by_axes_.emplace(key_of(record, {}), &record);
}

Baselines::Key Baselines::key_of(const record::CaseRecord& record, const record::Named<Value>& other) {
  Key key{{record.identity.axes.begin(), record.identity.axes.end()}, record.identity.repeat.value_or(1)};
  for (const auto& [name, value] : other) key.first[name] = value;
  return key;
}

const record::CaseRecord* Baselines::baseline_of(const record::CaseRecord& record) const {
  // Its parameters may be others than those of the cases that are there now.
  if (relative_to_.empty() || record.is_former) return nullptr;
  const auto found = by_axes_.find(key_of(record, relative_to_));
  return found == by_axes_.end() ? nullptr : found->second;
}

record::Cell Baselines::cell_of(const record::CaseRecord& record, const std::string& column) const {
  // A workload may have something of this name, and it then stands first.
  if (record::Cell own = record::cell_of(record, column); !own.empty()) return own;
  const bool is_speedup = column == record::speedup_column;
  const auto of_ratio = record::column_of_ratio(column);
  if (!is_speedup && !of_ratio) return {};
  const record::CaseRecord* baseline = baseline_of(record);
  if (!baseline || !baseline->result.is_ok() || !record.result.is_ok()) return {};
  const std::string figure = is_speedup ? "step.mean_ms" : std::string(*of_ratio);
  const auto own = record::cell_of(record, figure).number(), other = record::cell_of(*baseline, figure).number();
  if (!own || !other) return {};
  const double over = is_speedup ? *own : *other;
  if (over == 0) return {};
  return record::number_cell((is_speedup ? *other : *own) / over);
}

}  // namespace assay::host::results
