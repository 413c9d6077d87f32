// A compared metric: its name, and its figure in a record.
#pragma once
#include "compare/verdict.hpp"
#include "record/case_record.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

struct MetricOfRecord {
  RunFigure figure;
  std::string unit;  // "ms", "tokens/s", "MiB", or the workload's
  Direction better = Direction::lower_is_better;
  // A pure number that was computed, such as a sum: of two of them one is not better, but they may differ in a digit.
  bool is_result() const { return figure.exact && better == Direction::neither && unit.empty(); }
};

// `name` is `step`, a phase, a rate (`items_per_s`, `tokens_per_s`, `gflop_per_s`, ...), `memory` (the peak), a metric
// of the steps or of the case, or a column of docs/record.md with a number. Nothing when the record does not have it,
// or when it is not positive: a ratio then has no meaning.
std::optional<MetricOfRecord> metric_of(const record::CaseRecord& record, const std::string& name);
// The name by which all of these records are asked for the metric: `memory` is the most that a step held, but where one
// of them reports only the peak of the whole case, all are asked for that one (`memory.peak_mib`).
std::string name_for_all(const std::vector<const record::CaseRecord*>& records, const std::string& metric);
// The figure as it is, also where it is not positive and metric_of() gives nothing.
std::optional<double> figure_of(const record::CaseRecord& record, const std::string& name);

// The word where the metric or column is one: a number format, a status. Nothing when it is a number, or absent.
std::optional<std::string> word_of(const record::CaseRecord& record, const std::string& name);

// The names that this record has, for a message.
std::vector<std::string> metric_names(const record::CaseRecord& record);

// "faster", "slower", "less", "more", "better", "worse", "lower", "higher", "same", "differs" or "cannot
// tell".
std::string verdict_word(Outcome outcome, const std::string& metric, const MetricOfRecord& of_record);
// The outcome that `--fail-if slower` is about: of a time the higher one, of a rate the lower one.
bool is_worse(Outcome outcome, Direction better);

}  // namespace assay::host::compare
