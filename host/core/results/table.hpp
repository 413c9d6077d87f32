// A table of cases and its three spellings.
#pragma once
#include "common/palette.hpp"
#include "record/columns.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

struct RunSource;

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<record::Cell>> rows;  // one per record, in their order
};

// A `status` column is added where the columns leave it out and some case is not ok: a row without figures says why.
// `relative_to`: the axes and values of the baseline, for the columns of ratios. `source`: the run of the records, for
// its own columns; null leaves these empty.
Table make_table(std::vector<std::string> columns, const std::vector<record::CaseRecord>& records,
                 const record::Named<Value>& relative_to = {}, const RunSource* source = nullptr);

std::string to_csv(
    const Table& table);  // full precision, a line for each row; fields quoted as in RFC 4180, lines end in '\n'
std::string to_json(const Table& table);      // an array with an object for each row; an empty cell is null
std::string to_markdown(const Table& table);  // rounded, aligned
// Rounded, at most `width_columns` wide if headers broken at their dots make that possible. With a palette statuses,
// verdicts and their like have a colour, which takes no room.
std::string to_terminal(const Table& table, std::size_t width_columns = 120, const Palette& palette = {});

}  // namespace assay::host::results
