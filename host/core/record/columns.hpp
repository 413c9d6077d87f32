// The columns of a table (docs/record.md, "Column names"): one row for each, with its name, where its value stands in a
// record, its unit, and which direction is the better one. The check of [output] columns, the cells of the tables and
// what `assay compare` says of a figure all read these rows.
#pragma once
#include "record/case_record.hpp"
#include "record/cell.hpp"

#include <array>
#include <optional>
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
  bool exact = false;    // accounted to the byte, not measured
  bool is_text = false;  // its cells are words or texts
};

// A statistic of a phase or of a metric of the steps: the column "<phase>.<name>".
struct PhaseStatistic {
  std::string_view name;
  Cell (*cell)(const Phase& phase);
  std::string_view unit = "";
  bool of_step_alone = false;
  bool adds_up = false;  // over phases: the column "<phase>+<phase>.<name>" is their sum
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

// The columns that a record of such a workload can fill, except those of moments of memory and parts of a
// stage, whose names are free.
struct WorkloadNames {
  std::vector<std::string> params, settings, case_metrics, step_metrics, phases;
  std::string item_unit;  // "" when the workload counts nothing
};
std::vector<std::string> column_names(const WorkloadNames& workload);
// True for a name in `names` (of column_names), for the sum of a statistic over several phases
// (`<phase>+<phase>.mean_ms`), and for `memory.<moment>.mib`, `memory.<moment>.<kind>.mib`,
// `memory.<moment>.other.mib`, `memory.<moment>.since.<moment>.mib` and `memory.<moment>.<kind>.peak_mib`, and for the
// parts of a stage, `wall_s.setup.<part>` and `wall_s.verify.<part>`.
bool is_column(std::string_view column, const std::vector<std::string>& names);

// True for a column of this name whose values are words or texts, whatever the workload.
bool is_text_column(std::string_view column);

// Figures of a case over those of its baseline ([output] relative_to): "<column>.ratio", and how many times faster a
// step is. They need both records, and are made with the table.
inline constexpr std::string_view speedup_column = "speedup";
// "step.mean_ms" of "step.mean_ms.ratio"; nothing when the name is no ratio's.
std::optional<std::string_view> column_of_ratio(std::string_view column);

// Columns of the run that a record belongs to, and of the assay that made it. They need more than the record, and are
// made with the table, too (results/table.hpp).
inline constexpr std::array<std::string_view, 4> run_columns{"run", "experiment", "assay.version", "assay.revision"};

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
