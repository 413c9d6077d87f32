#include "results/table_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "results/column_choice.hpp"
#include "results/find_runs.hpp"
#include "results/output_place.hpp"
#include "results/shared_columns.hpp"
#include "results/table_page.hpp"
#include "results/tabled_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::results {
namespace {

enum class TableForm { terminal, markdown, csv, json };

TableForm form_of(const TableRequest& request, const std::optional<ViewFile>& file) {
  if (!request.format) {
    if (!file) return TableForm::terminal;
    return file->format == ViewFormat::csv        ? TableForm::csv
           : file->format == ViewFormat::markdown ? TableForm::markdown
                                                  : TableForm::json;
  }
  const std::string& word = *request.format;
  if (word == "terminal") return TableForm::terminal;
  if (word == "md" || word == "markdown") return TableForm::markdown;
  if (word == "csv") return TableForm::csv;
  if (word == "json") return TableForm::json;
  throw UsageError(fmt::format("--format is '{}'; expected terminal, md, csv or json", word));
}

Table table_asked_for(const std::vector<TabledRun>& runs, const TableRequest& request, TableForm form) {
  if (!request.columns.empty()) {
    const std::vector<std::string> wanted = comma_separated(request.columns);
    if (wanted.empty()) throw UsageError("--columns names no column; expected names separated by commas");
    return table_of_runs(chosen_columns(wanted, runs), runs);
  }
  const std::vector<std::string> shown = default_columns_of_runs(runs);
  if (form == TableForm::terminal || form == TableForm::markdown) return table_of_runs(shown, runs);
  return without_empty_columns(table_of_runs(shared_columns(shown, all_records(runs)), runs), shown.size());
}

std::string spelt_table(const Table& table, const std::vector<TabledRun>& runs, TableForm form) {
  switch (form) {
    case TableForm::csv: return to_csv(table);
    case TableForm::json: return to_json(table);
    case TableForm::markdown: return to_markdown(table) + "\n" + below_table_of_runs(runs);
    case TableForm::terminal: break;
  }
  return table_on_terminal(table, table_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO)) + "\n" +
         lines_on_terminal(below_table_of_runs(runs), STDOUT_FILENO);
}

std::optional<ViewFile> file_asked_for(const TableRequest& request) {
  if (!request.output) return std::nullopt;
  const std::string& given = *request.output;
  const auto place = output_place(given);
  if (const auto* file = std::get_if<ViewFile>(&place)) return *file;
  throw UsageError(fmt::format("--output is {}; expected a file that ends in .csv, .md or .json", given));
}

}  // namespace

int make_table(const TableRequest& request) {
  const auto file = file_asked_for(request);
  const TableForm form = form_of(request, file);
  if (request.runs.empty()) throw UsageError("no run is given; expected a run folder, or several");
  std::vector<std::string> warnings;
  std::vector<TabledRun> runs = read_tabled_runs(request.runs, warnings);
  for (const std::string& warning : warnings) say_on_stderr(warning);
  keep_matching(runs, request.filter);
  const std::string text = spelt_table(table_asked_for(runs, request, form), runs, form);
  if (file) {
    check_writable(*file);
    write_file_atomically(file->path, text);
    fmt::print("written: {}\n", file->path.string());
  } else {
    fmt::print("{}", text);
  }
  return exit_ok;
}

}  // namespace assay::host::results
