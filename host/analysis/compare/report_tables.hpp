// The tables of a comparison, before they are spelt.
#pragma once
#include "compare/comparison.hpp"
#include "compare/notes.hpp"
#include "results/table.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::compare {

// An empty text is an empty cell.
record::Cell text_cell(const std::string& text);
// The figure of an entry, or its word.
record::Cell value_cell(const Entry& entry);
// "0.98 .. 1.01", "? .. 1.01" where it is not known how far it goes down, "exact", "not known", or nothing.
std::string interval_text(const Entry& entry);

// How many runs a side would settle it; empty where there is a verdict.
record::Cell runs_needed_cell(const Entry& entry);

inline constexpr const char* runs_needed_column = "runs needed";
// The column of the ratio by the other figure than the compared one; "" where no case of the metric has it.
std::string other_ratio_column(const Comparison& comparison, const ComparedMetric& metric);
// Returns whether there was such a column.
bool drop_column(results::Table& table, const std::string& name);

bool is_compared(const Entry& entry);
bool compares_any(const ComparedCase& c);
std::set<std::string> units_of(const ComparedMetric& metric);

// One metric: a line per case with two sides, a line per case and side with more.
results::Table metric_table(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                            const NumberedNotes& notes);

// All metrics in one table, or in as few as make each one fit: a line per case, and with more than two sides one per
// case and side.
std::vector<results::Table> tables_side_by_side(const Comparison& comparison, const NumberedNotes& notes,
                                                const std::function<bool(const results::Table&)>& fits);

}  // namespace assay::host::compare
