// The columns of a table (docs/record.md, "Column names"): one row for each, with its name, where its value stands in a
// record, its unit, and which direction is the better one. The check of [output] columns, the cells of the tables and
// what `assay compare` says of a figure all read these rows.
#pragma once
#include "record/case_record.hpp"
#include "record/cell.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::record {

// A column whose name no workload decides.
struct Column {
  std::string_view name;
  Cell (*cell)(const CaseRecord& record);
  std::string_view unit = "";
  Direction direction = Direction::neither;
  bool exact = false;  // accounted to the byte, not measured
};

// A statistic of a phase or of a metric of the steps: the column "<phase>.<name>".
struct PhaseStatistic {
  std::string_view name;
  Cell (*cell)(const Phase& phase);
  std::string_view unit = "";
  bool of_step_alone = false;
};
struct StepMetricStatistic {
  std::string_view name;
  Cell (*cell)(const StepMetric& metric);
};

// These come before anything that a workload or an experiment names likewise, the second group after it.
std::span<const Column> first_columns();
std::span<const Column> later_columns();
std::span<const PhaseStatistic> phase_statistics();
std::span<const StepMetricStatistic> step_metric_statistics();

// The columns that a record of such a workload can fill, except those of moments of memory, whose names are free.
struct WorkloadNames {
  std::vector<std::string> params, settings, case_metrics, step_metrics, phases;
  std::string item_unit;  // "" when the workload counts nothing
};
std::vector<std::string> column_names(const WorkloadNames& workload);
// True for a name in `names` (of column_names) and for `memory.<moment>.mib`, `memory.<moment>.<kind>.mib` and
// `memory.<moment>.<kind>.peak_mib`.
bool is_column(std::string_view column, const std::vector<std::string>& names);

// What a record has in a column.
struct ColumnValue {
  Cell cell;  // empty when the record has no such value
  std::string unit;
  Direction direction = Direction::neither;
  bool exact = false;  // accounted or computed, not measured: the same in every run
};
ColumnValue value_of(const CaseRecord& record, std::string_view column);
Cell cell_of(const CaseRecord& record, std::string_view column);

}  // namespace assay::host::record
