// Reads the output of nccl-tests: a line of `#` for each rank and for the columns, then a row for each size,
// with the mean time of an operation in microseconds out of place and in place, and a verdict at the end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/filter.hpp"
#include "imports/making_records.hpp"
#include "imports/nccl_log.hpp"

namespace assay::host::imports {
namespace {

// Distinct texts in their order: "NVIDIA A10, Tesla T4".
template <typename Text>
std::string distinct(const std::vector<NcclRank>& ranks, Text text) {
  std::vector<std::string> seen;
  for (const NcclRank& rank : ranks)
    if (!(rank.*text).empty() && std::find(seen.begin(), seen.end(), rank.*text) == seen.end())
      seen.push_back(rank.*text);
  return fmt::format("{}", fmt::join(seen, ", "));
}

// One operation in one of its two places.
struct Cell {
  const NcclSection& section;
  const std::vector<std::string>& row;
  bool in_place;

  std::string operation(const char* name) const {
    const auto& names = section.columns.operation;
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? "" : row[static_cast<std::size_t>(found - names.begin())];
  }
  std::string group(std::string_view name) const {
    const auto& names = section.columns.group;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return "";
    const std::size_t first = section.columns.operation.size() + (in_place ? names.size() : 0);
    return row[first + static_cast<std::size_t>(found - names.begin())];
  }
  std::optional<double> figure(std::string_view name) const { return number_in(group(name)); }
};

// Whether the row itself says that a result is wrong. Older programs print the largest error, which of whole numbers
// is 0, and of others below a bound that their source has for each type.
std::optional<bool> is_wrong(const Cell& cell) {
  if (const auto count = cell.figure("#wrong")) return *count > 0;
  const auto error = cell.figure("error");
  if (!error) return std::nullopt;
  const std::string type = cell.operation("type");
  const double bound = type == "half" || type == "bfloat16" ? 1e-2
                       : type == "float"                    ? 1e-5
                       : type == "double"                   ? 1e-12
                                                            : 0;
  return *error > bound;
}

std::string wrong_text(const Cell& cell) {
  if (const std::string count = cell.group("#wrong"); !count.empty())
    return fmt::format("nccl-tests found {} wrong elements", count);
  return fmt::format("nccl-tests found an error of {} in results of type {}", cell.group("error"),
                     cell.operation("type"));
}

void make_wrong(record::CaseRecord& record, std::string reason) {
  record.result.status = record::Status::wrong_result;
  record.result.reason = std::move(reason);
  record.result.verify = record::VerificationResult{record::Verification::wrong_result, record.result.reason};
}

record::Phase step_of(const Cell& cell, double mean_us) {
  record::Phase step = step_of_mean(mean_us / 1e3, std::nullopt, cell.section.iterations);
  const auto ms = [&cell](const char* name) -> record::Number {
    const auto us = cell.figure(name);
    return us ? std::optional(*us / 1e3) : std::nullopt;
  };
  // NCCL_TESTS's figures of single iterations.
  step.min_ms = ms("i_min");
  step.max_ms = ms("i_max");
  step.p99_ms = ms("i_p99");
  if (const auto cv = spread_of(cell.figure("i_cv%"))) {
    step.cv = *cv / 100;
    step.std_ms = *step.cv * mean_us / 1e3;
  }
  return step;
}

// Columns that a record has no place for.
void note_other_columns(const NcclSection& section, std::set<std::string>& others) {
  static const std::set<std::string> known{"time",  "cputime", "algbw", "busbw", "#wrong",
                                           "error", "i_min",   "i_max", "i_p99", "i_cv%"};
  for (const std::string& name : section.columns.group)
    if (!known.contains(name)) others.insert(name);
  if (section.columns.trailing_words > 0) others.insert("timestamp");
}

// All ranks of a section, and how they are grouped: a split makes groups with another size.
void set_ranks(const NcclSection& section, record::CaseRecord& record) {
  const std::vector<NcclRank>& ranks = section.jobs.front();
  std::map<std::int64_t, std::size_t> groups;
  for (const NcclRank& rank : ranks) ++groups[rank.group];
  std::vector<std::size_t> sizes;
  for (const auto& [group, size] : groups) sizes.push_back(size);
  const bool is_even = std::all_of(sizes.begin(), sizes.end(), [&](std::size_t size) { return size == sizes[0]; });
  if (is_even) record.identity.ranks = static_cast<std::int32_t>(sizes[0]);
  if (groups.size() > 1) record.identity.params.emplace_back("groups", static_cast<std::int64_t>(groups.size()));
  if (!is_even) record.identity.params.emplace_back("group_sizes", fmt::format("{}", fmt::join(sizes, ",")));
  record.result.device.emplace();
  record.result.device->name = distinct(ranks, &NcclRank::device);
  record.result.device->kind = record.result.device->name.starts_with("AMD") ? "hip" : "cuda";
  record.host = distinct(ranks, &NcclRank::host);
}

record::CaseRecord record_of(const Cell& cell, const std::string& collective, std::size_t index) {
  record::CaseRecord record = new_record("nccl-tests:" + collective, index);
  record.identity.params = {
      {"bytes", size_of(cell.operation("size"))}, {"type", cell.operation("type")}, {"in_place", cell.in_place}};
  for (const char* name : {"redop", "root"})
    if (const std::string value = cell.operation(name); !value.empty())
      record.identity.params.emplace_back(name, value);
  // What makes another measurement of it, where it is not as usual.
  const std::string& time_column = cell.section.columns.group[0];
  if (cell.section.aggregated.value_or(1) != 1)
    record.identity.params.emplace_back("agg_iters", *cell.section.aggregated);
  if (cell.section.is_graph) record.identity.params.emplace_back("graph", true);
  if (time_column == "cputime") record.identity.params.emplace_back("time", "cpu");
  set_ranks(cell.section, record);

  const auto wrong = is_wrong(cell);
  if (wrong && *wrong) {
    make_wrong(record, wrong_text(cell));
    return record;  // a number only if correct
  }
  if (wrong)
    record.result.verify = record::VerificationResult{
        record::Verification::ok, cell.figure("#wrong") ? "by nccl-tests: no element is wrong"
                                                        : "by nccl-tests: its largest error is within the bound"};
  const auto time_us = cell.figure(time_column);
  if (!time_us || !is_time_ms(*time_us / 1e3)) {
    fail(record, fmt::format("the time is '{}'", cell.group(time_column)));
    return record;
  }
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step_of(cell, *time_us));
  for (const char* name : {"algbw", "busbw"})
    if (const auto bandwidth = cell.figure(name))
      add_bandwidth(record, std::string(name) + "_gbytes_per_s", *bandwidth);
  return record;
}

// What is to be known of a section beside its rows, in words that go into its records, too.
std::vector<std::string> notes_of(const NcclSection& section, const std::string& name) {
  std::vector<std::string> notes;
  if (section.jobs.size() > 1)
    notes.push_back(fmt::format(
        "{}: {} jobs of {} {} each wrote this log side by side (a build without MPI under mpirun?); ranks are those "
        "of one job",
        name, section.jobs.size(), section.jobs[0].size(), section.jobs[0].size() == 1 ? "rank" : "ranks"));
  if (section.lost_jobs > 0)
    notes.push_back(fmt::format("{}: {} more began and ended before a first size", name, section.lost_jobs));
  if (!section.torn.empty())
    notes.push_back(fmt::format(
        "{}: {} {} torn by other output and left out: {}", name, section.torn.size(),
        section.torn.size() == 1 ? "row is" : "rows are",
        fmt::join(section.torn.begin(),
                  section.torn.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(section.torn.size(), 8)),
                  ", ")));
  if (!section.error.empty()) notes.push_back(fmt::format("{}: it failed: {}", name, section.error));
  if (!section.out_of_bounds)
    notes.push_back(
        fmt::format("{}: the end is missing ('# Out of bounds values'): it ended early, or the log was cut "
                    "off; it has {} {}",
                    name, section.rows.size(), section.rows.size() == 1 ? "row" : "rows"));
  if (section.is_below_bandwidth)
    notes.push_back(fmt::format("{}: its mean bus bandwidth is below the least that was asked (FAILED)", name));
  return notes;
}

// The program's verdict counts wrong results. Where rows do not show as many, any of the others may be one.
void apply_verdict(const NcclSection& section, std::span<record::CaseRecord> records) {
  if (!section.has_failed) return;
  const auto shown = std::count_if(records.begin(), records.end(), [](const record::CaseRecord& record) {
    return record.result.status == record::Status::wrong_result;
  });
  if (shown > 0 && section.out_of_bounds && shown >= *section.out_of_bounds) return;
  for (record::CaseRecord& record : records) {
    if (record.result.status == record::Status::wrong_result) continue;
    fail(record, "");
    record.result.metrics.reset();
    make_wrong(record, fmt::format("nccl-tests ended with 'Out of bounds values : {} FAILED', and no row shows which",
                                   section.out_of_bounds.value_or(0)));
  }
}

// A section's own name; otherwise the user's, or the file's where the log names none.
std::vector<std::string> names_of(const NcclLog& log, const ImportOptions& options) {
  std::vector<std::string> names;
  const NcclSection* nameless = nullptr;
  std::size_t named = 0;
  for (const NcclSection& section : log.sections) named += section.collective.empty() ? 0 : 1;
  std::string given = options.name;
  if (given.empty() && named == 0) given = nccl_collective_in(options.file_name);
  for (const NcclSection& section : log.sections) {
    names.push_back(section.collective.empty() ? given : section.collective);
    if (names.back().empty())
      throw ImportError(
          "it does not say which collective it is of; give --name all_reduce, or a file named all_reduce_perf.txt");
    if (!section.collective.empty()) continue;
    if (nameless && nameless->columns.operation != section.columns.operation)
      throw ImportError("several programs wrote this log without their names; import the output of each separately");
    nameless = &section;
  }
  return names;
}

}  // namespace

ImportedRun read_nccl_tests(std::string_view text, const ImportOptions& options) {
  return run_of_nccl_log(read_nccl_log(text), options);
}

ImportedRun run_of_nccl_log(const NcclLog& log, const ImportOptions& options) {
  if (log.sections.empty())
    throw ImportError(
        "there is no line of columns; expected the whole output of a program of nccl-tests, from its first line");
  const std::vector<std::string> names = names_of(log, options);
  if (std::all_of(log.sections.begin(), log.sections.end(), [](const auto& each) { return each.rows.empty(); })) {
    const std::string& error = log.sections[0].error;
    throw ImportError("there is no row of figures" + (error.empty() ? "; did the program end before its first size?"
                                                                    : "; the program failed: " + error));
  }
  ImportedRun run;
  std::size_t rows = 0;
  for (const NcclSection& section : log.sections) rows += section.rows.size();
  run.records.reserve(2 * rows);  // a record has kilobytes
  std::set<std::string> others;
  for (std::size_t i = 0; i < log.sections.size(); ++i) {
    const NcclSection& section = log.sections[i];
    if (section.jobs.empty() || section.jobs[0].empty())
      throw ImportError(
          "there is no line of a rank ('#  Rank  0 ...'); expected the whole output, from its first line");
    for (const auto& job : section.jobs)
      if (job.size() != section.jobs[0].size())
        throw ImportError(
            fmt::format("jobs of {} and of {} ranks wrote this log side by side, and their rows cannot be "
                        "distinguished; import the output of "
                        "each separately",
                        section.jobs[0].size(), job.size()));
    const std::size_t first = run.records.size();
    for (const auto& row : section.rows)
      for (const bool in_place : {false, true})
        run.records.push_back(record_of({section, row, in_place}, names[i], run.records.size()));
    const auto records = std::span(run.records).subspan(first);
    apply_verdict(section, records);
    for (const std::string& note : notes_of(section, names[i])) {
      run.notes.push_back(note);
      for (record::CaseRecord& record : records) record.result.note(note);
    }
    note_other_columns(section, others);
  }
  for (const std::string& error : log.errors) run.notes.push_back("another process failed: " + error);
  for (const std::string& begun : log.begun)
    run.notes.push_back(fmt::format("a program that began has no row: {}", begun.empty() ? "it has no name" : begun));
  if (!others.empty()) run.notes.push_back(fmt::format("columns left out: {}", fmt::join(others, ", ")));
  set_axes(run.records);
  run.started = log.started;
  run.host = run.records.front().host;
  const bool is_one = std::set<std::string>(names.begin(), names.end()).size() == 1;
  run.name = folder_name(is_one ? "nccl-tests-" + names[0] : "nccl-tests");
  return run;
}

}  // namespace assay::host::imports
