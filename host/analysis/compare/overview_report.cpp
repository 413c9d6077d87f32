// An overview of runs as text.
#include "common/text_format.hpp"
#include "compare/overview.hpp"
#include "compare/report_tables.hpp"
#include "record/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace assay::host::compare {
namespace {

using Json = nlohmann::ordered_json;

Json figure_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

record::Cell count(std::size_t value) { return record::count_cell(static_cast<std::int64_t>(value)); }

// Does the path itself name the experiment, as that of a run folder does?
bool is_named_by_path(const RunRow& row) {
  const std::filesystem::path path = row.path;
  return std::find(path.begin(), path.end(), row.experiment) != path.end();
}

// `width_columns` 0: as long as the texts are.
results::Table table_of(const Overview& overview, std::size_t width_columns) {
  const bool short_form = width_columns > 0;
  const bool experiments = !short_form || !std::all_of(overview.runs.begin(), overview.runs.end(), is_named_by_path);
  constexpr std::size_t widest_device = 24, minute = std::string_view("2026-11-20T12:00").size();
  results::Table table;
  table.columns = {"run", "experiment",   "started",     "device",    "cases",
                   "ok",  "step.mean_ms", "items_per_s", "comparison"};
  if (!experiments) table.columns.erase(table.columns.begin() + 1);
  for (const RunRow& row : overview.runs) {
    const std::string device = one_line(row.device);
    table.rows.push_back({text_cell(row.path), text_cell(row.experiment),
                          text_cell(short_form ? row.started.substr(0, minute) : row.started),
                          text_cell(short_form ? fit_to_width(device, widest_device) : device), count(row.cases),
                          count(row.ok), record::number_cell(row.step_mean_ms), record::number_cell(row.items_per_s),
                          row.group ? count(*row.group + 1) : record::Cell{}});
    if (!experiments) table.rows.back().erase(table.rows.back().begin() + 1);
  }
  return table;
}

}  // namespace

std::string overview_text(const Overview& overview, std::size_t width_columns) {
  std::string text = fmt::format("Runs below {} (figures are means over cases)\n{}", overview.folder,
                                 results::to_terminal(table_of(overview, width_columns), width_columns));
  for (const std::string& line : overview.skipped) text += fmt::format("  {}\n", one_line(line));
  return text;
}

std::string overview_markdown(const Overview& overview) {
  std::string text = fmt::format("# Runs below {}\n\nFigures are means over cases.\n\n{}", overview.folder,
                                 results::to_markdown(table_of(overview, 0)));
  if (!overview.skipped.empty()) text += "\n";
  for (const std::string& line : overview.skipped) text += fmt::format("- {}\n", one_line(line));
  return text;
}

std::string overview_csv(const Overview& overview) { return results::to_csv(table_of(overview, 0)); }

std::string overview_json(const Overview& overview, const std::vector<std::string>& comparisons) {
  Json runs = Json::array(), compared = Json::array();
  for (const RunRow& row : overview.runs)
    runs.push_back({{"run", row.path},
                    {"experiment", row.experiment},
                    {"workload", row.workload},
                    {"started", row.started},
                    {"device", row.device},
                    {"cases", row.cases},
                    {"ok", row.ok},
                    {"step_mean_ms", figure_json(row.step_mean_ms)},
                    {"items_per_s", figure_json(row.items_per_s)},
                    {"comparison", row.group ? Json(*row.group + 1) : Json()}});
  for (const std::string& comparison : comparisons) compared.push_back(Json::parse(comparison));
  const Json out{{"schema", 1},
                 {"folder", overview.folder},
                 {"runs", std::move(runs)},
                 {"comparisons", std::move(compared)},
                 {"skipped", overview.skipped}};
  return record::json_text(out, 2) + "\n";
}

}  // namespace assay::host::compare
