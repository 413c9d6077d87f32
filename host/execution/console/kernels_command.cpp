#include "console/kernels_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/exit_code.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "profile/kernel_rows.hpp"
#include "profile/kernel_study.hpp"
#include "results/case_text.hpp"
#include "results/find_runs.hpp"
#include "results/tabled_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::console {
namespace {

using profile::KernelRows;
using record::CaseRecord;

constexpr std::size_t most_name_columns = 48;  // of a kernel's name on a terminal

std::string checked_word(const char* option, const std::string& word, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  throw UsageError(fmt::format("--{} is '{}'; expected one of {}{}", option, word, fmt::join(words, ", "),
                               did_you_mean(word, words)));
}

KernelRows rows_of(const KernelsRequest& request) {
  const bool is_detail = !request.cases.empty() || request.top;
  const std::string by = request.by ? checked_word("by", *request.by, {"phase", "class", "kernel", "counter", "plan"})
                                    : (is_detail ? "kernel" : "phase");
  if ((by == "phase" || by == "plan") && request.top)
    throw UsageError("--top counts classes or kernels; expected --by class, kernel or counter beside it");
  return by == "phase"     ? KernelRows::phases
         : by == "class"   ? KernelRows::classes
         : by == "counter" ? KernelRows::counters
         : by == "plan"    ? KernelRows::plan
                           : KernelRows::kernels;
}

std::size_t top_of(const KernelsRequest& request) {
  if (!request.top) return 0;
  const std::int64_t top = *request.top;
  if (top < 1) throw UsageError(fmt::format("--top is {}; expected a number >= 1", top));
  return static_cast<std::size_t>(top);
}

std::vector<CaseRecord> records_of_run(const std::string& run) {
  const auto places = results::runs_of(run);
  if (places.size() != 1)
    throw UsageError(
        fmt::format("{} holds {} runs; expected one of them, such as {}", run, places.size(), places.front().string()));
  std::vector<std::string> warnings;
  std::vector<results::TabledRun> runs = results::read_tabled_runs({run}, warnings);
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  return std::move(runs.front().records);
}

// Only the cases of these numbers, which count from 1.
void keep_cases(std::vector<CaseRecord>& records, const std::vector<std::int64_t>& numbers) {
  for (const std::int64_t number : numbers)
    if (std::none_of(records.begin(), records.end(),
                     [number](const CaseRecord& r) { return r.identity.index + 1 == number; })) {
      std::vector<std::int64_t> known;
      for (const CaseRecord& r : records) known.push_back(r.identity.index + 1);
      throw UsageError(
          fmt::format("--case is {}, which the run does not have; it has {}", number, fmt::join(known, ", ")));
    }
  std::erase_if(records, [&](const CaseRecord& r) {
    return std::find(numbers.begin(), numbers.end(), r.identity.index + 1) == numbers.end();
  });
}

// What the case itself says of its missing kernels, or how it ended.
std::string why_without_kernels(const CaseRecord& r) {
  if (!r.result.is_ok()) return fmt::format("{}: {}", r.result.status_text(), one_line(r.result.reason));
  for (const std::string& note : r.result.notes.value_or(std::vector<std::string>{}))
    if (note.starts_with(profile::kernels_note)) return note.substr(profile::kernels_note.size());
  return "it was run without them";
}

// Leaves the cases that have kernels, and names the others. Throws when none has.
void keep_those_with_kernels(std::vector<CaseRecord>& records, const std::string& run, KernelRows rows) {
  const auto has = [rows](const CaseRecord& r) { return profile::has_rows(r, rows); };
  if (std::none_of(records.begin(), records.end(), has)) {
    const bool is_counted = rows == KernelRows::counters || rows == KernelRows::plan;
    const char* const setting = is_counted ? "ncu" : "kernels";
    throw UsageError(
        fmt::format("{} has no {}kernels{}; run the experiment with [profile] {} = true "
                    "(--set profile.{}=true) on a GPU",
                    run, is_counted ? "counted " : "",
                    records.empty() ? "" : fmt::format(" ({})", why_without_kernels(records[0])), setting, setting));
  }
  for (const CaseRecord& r : records)
    if (!has(r))
      fmt::print(stderr, "assay: case {} ({}) has no kernels: {}\n", r.identity.index + 1,
                 results::case_label(r.identity.axes), why_without_kernels(r));
  std::erase_if(records, [&](const CaseRecord& r) { return !has(r); });
}

// Names of kernels are longer than a screen is wide; files have them whole.
void shorten_names(results::Table& table) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column] != "kernel" && table.columns[column] != "longest.kernel") continue;
    for (std::vector<record::Cell>& row : table.rows)
      if (const auto* name = std::get_if<std::string>(&row[column].value))
        row[column] = record::text_cell(fit_to_width(*name, most_name_columns));
  }
}

std::string kernels_text(results::Table table, const std::string& format) {
  if (format == "markdown") return results::to_markdown(table);
  if (format == "csv") return results::to_csv(table);
  if (format == "json") return results::to_json(table);
  shorten_names(table);
  return results::to_terminal(table, results::table_width(STDOUT_FILENO));
}

}  // namespace

int show_kernels(const KernelsRequest& request) {
  const std::string format = checked_word("format", request.format, {"terminal", "markdown", "csv", "json"});
  KernelRows rows = rows_of(request);
  const std::size_t top = top_of(request);
  std::vector<CaseRecord> records = records_of_run(request.run);
  if (!request.cases.empty()) keep_cases(records, request.cases);
  const auto any = [&](KernelRows kind) {
    return std::any_of(records.begin(), records.end(),
                       [kind](const CaseRecord& r) { return profile::has_rows(r, kind); });
  };
  if (!request.by && !any(rows) && any(KernelRows::counters)) rows = KernelRows::counters;
  keep_those_with_kernels(records, request.run, rows);
  fmt::print("{}", kernels_text(rows == KernelRows::plan ? request.beside_plan(records)
                                                         : profile::kernel_table(records, rows, top),
                                format));
  return exit_ok;
}

}  // namespace assay::host::console
