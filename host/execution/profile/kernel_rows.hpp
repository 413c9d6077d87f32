// The kernels of a run's cases as one table: a row for each phase, class or kernel, with the axes as columns.
#pragma once
#include "record/case_record.hpp"
#include "results/table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::profile {

enum class KernelRows { phases, classes, kernels, counters, plan };  // of the last two: of what ncu has counted

// Whether a case has what such rows are made of: a trace of its kernels, or counts. One that failed or was wrong
// has none to show, though a trace may have been taken before.
bool has_rows(const record::CaseRecord& r, KernelRows rows);

// The axes of all records, each once, in their order; and the first cells of a row: the case's number, which counts
// from 1 as those of its files do, and its values of these axes.
std::vector<std::string> axes_of(const std::vector<record::CaseRecord>& records);
std::vector<record::Cell> case_head(const record::CaseRecord& r, const std::vector<std::string>& axes);

// Makes the table of records that have such rows. It has at most `most_rows` classes or kernels of each phase, the
// longest first; 0 means all of them. Of the plan: counted_beside_plan.hpp.
results::Table kernel_table(const std::vector<record::CaseRecord>& records, KernelRows rows, std::size_t most_rows);

}  // namespace assay::host::profile
