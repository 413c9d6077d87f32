// assay table
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/options.hpp"
#include "cli/output_place.hpp"
#include "common/files.hpp"
#include "results/column_choice.hpp"
#include "results/find_runs.hpp"
#include "results/shared_columns.hpp"
#include "results/table_page.hpp"
#include "results/tabled_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* about_table =
    "Makes a table of the cases of one run or several. RUN is a run folder, a cases.jsonl, a summary\n"
    "bench_*.json, or a folder with several of these below it. With several runs the first column is the run.\n\n"
    "Without --columns the terminal and md show what the run's own table shows without [output] columns, and of\n"
    "several runs also what tells them apart; csv and json have machine, device, files, revision, and each\n"
    "parameter and setting as well, so that tables of other days can be put beside them.";

enum class TableForm { terminal, markdown, csv, json };

TableForm form_of(const po::variables_map& values, const std::optional<results::ViewFile>& file) {
  if (!values.count("format")) {
    if (!file) return TableForm::terminal;
    return file->format == results::ViewFormat::csv        ? TableForm::csv
           : file->format == results::ViewFormat::markdown ? TableForm::markdown
                                                           : TableForm::json;
  }
  const std::string& word = values["format"].as<std::string>();
  if (word == "terminal") return TableForm::terminal;
  if (word == "md" || word == "markdown") return TableForm::markdown;
  if (word == "csv") return TableForm::csv;
  if (word == "json") return TableForm::json;
  throw UsageError(fmt::format("--format is '{}'; expected terminal, md, csv or json", word));
}

// Names do not have commas, patterns neither.
std::vector<std::string> names_in(const Arguments& given) {
  std::vector<std::string> names;
  for (const std::string& text : given)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      if (end > begin) names.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  return names;
}

results::Table table_asked_for(const std::vector<results::TabledRun>& runs, const po::variables_map& values,
                               TableForm form) {
  if (values.count("columns")) {
    const std::vector<std::string> wanted = names_in(list_of(values, "columns"));
    if (wanted.empty()) throw UsageError("--columns names no column; expected names separated by commas");
    return results::table_of_runs(results::chosen_columns(wanted, runs), runs);
  }
  const std::vector<std::string> shown = results::default_columns_of_runs(runs);
  if (form == TableForm::terminal || form == TableForm::markdown) return results::table_of_runs(shown, runs);
  return results::without_empty_columns(
      results::table_of_runs(results::shared_columns(shown, results::all_records(runs)), runs), shown.size());
}

std::string spelt_table(const results::Table& table, const std::vector<results::TabledRun>& runs, TableForm form) {
  switch (form) {
    case TableForm::csv: return results::to_csv(table);
    case TableForm::json: return results::to_json(table);
    case TableForm::markdown: return results::to_markdown(table) + "\n" + results::below_table_of_runs(runs);
    case TableForm::terminal: break;
  }
  return results::table_on_terminal(table, results::table_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO)) + "\n" +
         results::lines_on_terminal(results::below_table_of_runs(runs), STDOUT_FILENO);
}

std::optional<results::ViewFile> file_asked_for(const po::variables_map& values) {
  if (!values.count("output")) return std::nullopt;
  const std::string& given = values["output"].as<std::string>();
  const auto place = output_place(given);
  if (const auto* file = std::get_if<results::ViewFile>(&place)) return *file;
  throw UsageError(fmt::format("--output is {}; expected a file that ends in .csv, .md or .json", given));
}

int make_table(const po::variables_map& values) {
  const auto file = file_asked_for(values);
  const TableForm form = form_of(values, file);
  if (!values.count("run")) throw UsageError("no run is given; expected a run folder, or several");
  std::vector<std::string> warnings;
  std::vector<results::TabledRun> runs = results::read_tabled_runs(list_of(values, "run"), warnings);
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  results::keep_matching(runs, list_of(values, "filter"));
  const std::string text = spelt_table(table_asked_for(runs, values, form), runs, form);
  if (file) {
    check_writable(*file);
    write_file_atomically(file->path, text);
    fmt::print("written: {}\n", file->path.string());
  } else {
    fmt::print("{}", text);
  }
  return run::exit_ok;
}

}  // namespace

int table_command(const Arguments& arguments) {
  po::options_description visible("Options");
  const auto texts = [] { return po::value<Arguments>()->composing(); };
  visible.add_options()("columns", texts(),
                        "names separated by commas; patterns such as 'step.*'; all; default; repeatable")(
      "filter", texts(),
      "column=value, or with a list (status=ok,oom), !=, <, <=, >, >=: only the rows that match; repeatable")(
      "format", po::value<std::string>(), "terminal, md, csv or json; without it as the name of --output ends")(
      "output", po::value<std::string>(), "a .csv, .md or .json file to write in place of the terminal");
  const ParsedOptions options =
      parse_options(arguments, "assay table RUN [RUN ...] [options]", about_table, visible, "run", -1);
  if (options.help) return run::exit_ok;
  try {
    return make_table(options.values);
  } catch (const results::NoRunError& e) {
    throw UsageError(e.what());
  } catch (const results::UnknownColumnError& e) {
    throw UsageError(e.what());
  } catch (const results::FilterError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
