// assay kernels
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/counted_beside_plan.hpp"
#include "cli/kernel_tables.hpp"
#include "cli/options.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "compare/sides.hpp"
#include "profile/kernel_study.hpp"
#include "results/case_text.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
using record::CaseRecord;

constexpr const char* kernels_about =
    "Prints where the time of a step goes on the device, from the kernels that [profile] kernels = true has put in\n"
    "the record of a run: for each case, its whole step and each phase, the share of the matrix products, of\n"
    "attention and of softmax, how busy the device was, and the longest kernel; or, with --by counter, bytes,\n"
    "operations and bound of each kernel, from what [profile] ncu = true has put there. RUN is a run folder, a\n"
    "cases.jsonl or a summary bench_*.json. docs/record.md, \"Kernels\" and \"Counters\", explains the columns.";

constexpr std::size_t most_name_columns = 48;  // of a kernel's name on a terminal

po::options_description kernel_options() {
  po::options_description visible("Options");
  visible.add_options()  //
      ("by", po::value<std::string>(),
       "a row for each phase, class or kernel (default: phase; with --case or --top, kernel), or counter: for each\n"
       "kernel that Nsight Compute has counted (default where no case has others), or plan: for each kind of\n"
       "operation, what was counted beside what `assay plan` says that it takes")  //
      ("case", po::value<std::vector<std::int64_t>>()->composing(),
       "this case alone, by its number from 1; may be repeated")                                   //
      ("top", po::value<std::int64_t>(), "so many classes or kernels of each phase, the longest")  //
      ("plugin-path", po::value<std::vector<std::string>>()->composing(),
       "with --by plan: folder with plugins, searched first; repeatable")  //
      ("format", po::value<std::string>()->default_value("terminal"), "or markdown, csv, json");
  return visible;
}

std::string checked_word(const char* option, const std::string& word, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  throw UsageError(fmt::format("--{} is '{}'; expected one of {}{}", option, word, fmt::join(words, ", "),
                               did_you_mean(word, words)));
}

KernelRows rows_of(const po::variables_map& values) {
  const bool is_detail = values.count("case") || values.count("top");
  const std::string by = values.count("by") ? checked_word("by", values["by"].as<std::string>(),
                                                           {"phase", "class", "kernel", "counter", "plan"})
                                            : (is_detail ? "kernel" : "phase");
  if ((by == "phase" || by == "plan") && values.count("top"))
    throw UsageError("--top counts classes or kernels; expected --by class, kernel or counter beside it");
  return by == "phase"     ? KernelRows::phases
         : by == "class"   ? KernelRows::classes
         : by == "counter" ? KernelRows::counters
         : by == "plan"    ? KernelRows::plan
                           : KernelRows::kernels;
}

std::size_t top_of(const po::variables_map& values) {
  if (!values.count("top")) return 0;
  const std::int64_t top = values["top"].as<std::int64_t>();
  if (top < 1) throw UsageError(fmt::format("--top is {}; expected a number >= 1", top));
  return static_cast<std::size_t>(top);
}

std::vector<CaseRecord> records_of_run(const std::string& run) {
  compare::Sides found = compare::read_sides({run}, compare::FolderOfRuns::sides);
  for (const std::string& warning : found.warnings) results::say_on_stderr(warning);
  std::size_t runs = 0;
  for (const compare::Side& side : found.sides) runs += side.runs.size();
  if (runs != 1)
    throw UsageError(
        fmt::format("{} holds {} runs; expected one of them, such as {}", run, runs, found.sides[0].runs[0].path));
  return std::move(found.sides[0].runs[0].records);
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

// Leaves the cases that have kernels, and tells of the others. Throws when none has.
void keep_those_with_kernels(std::vector<CaseRecord>& records, const std::string& run, KernelRows rows) {
  const auto has = [rows](const CaseRecord& r) { return has_rows(r, rows); };
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

int kernels_command(const Arguments& arguments) {
  const ParsedOptions parsed =
      parse_options(arguments, "assay kernels RUN [options]", kernels_about, kernel_options(), "run", 1);
  if (parsed.help) return run::exit_ok;
  const auto& values = parsed.values;
  const std::string format =
      checked_word("format", values["format"].as<std::string>(), {"terminal", "markdown", "csv", "json"});
  KernelRows rows = rows_of(values);
  const std::size_t top = top_of(values);
  if (!values.count("run")) throw UsageError("no run is given; expected a run folder");
  const std::string run = values["run"].as<std::vector<std::string>>().at(0);
  try {
    std::vector<CaseRecord> records = records_of_run(run);
    if (values.count("case")) keep_cases(records, values["case"].as<std::vector<std::int64_t>>());
    const auto any = [&](KernelRows kind) {
      return std::any_of(records.begin(), records.end(), [kind](const CaseRecord& r) { return has_rows(r, kind); });
    };
    if (!values.count("by") && !any(rows) && any(KernelRows::counters)) rows = KernelRows::counters;
    keep_those_with_kernels(records, run, rows);
    fmt::print("{}",
               kernels_text(rows == KernelRows::plan ? counted_beside_plan(records, run, list_of(values, "plugin-path"))
                                                     : kernel_table(records, rows, top),
                            format));
    return run::exit_ok;
  } catch (const compare::NoRunError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
