#include "compare/report.hpp"

#include "common/text_format.hpp"
#include "compare/advice.hpp"
#include "compare/groups.hpp"
#include "compare/notes.hpp"
#include "compare/report_tables.hpp"
#include "results/table_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

namespace assay::host::compare {
namespace {

enum class Form { terminal, markdown };

struct Style {
  Form form;
  std::size_t width_columns;
  Palette palette;
};

std::string spelt(const results::Table& table, const Style& style) {
  return style.form == Form::terminal ? results::table_on_terminal(table, style.width_columns, style.palette)
                                      : results::to_markdown(table);
}

std::string heading(const std::string& text, const Style& style) {
  return style.form == Form::terminal ? fmt::format("{}\n", text) : fmt::format("## {}\n\n", text);
}

// `text` with line breaks at spaces; further lines stand under the first.
std::string wrapped(const std::string& text, std::size_t width_columns) {
  constexpr std::size_t kIndent = 2, kNarrowest = 40;
  const std::size_t room = std::max(kNarrowest, width_columns) - kIndent;
  std::string out(kIndent, ' '), word;
  std::size_t used = 0;
  std::istringstream words(text);
  while (words >> word) {
    const std::size_t width = display_width(word);
    if (used > 0 && used + 1 + width > room) {
      out += fmt::format("\n{:{}}", "", 2 * kIndent);
      used = kIndent;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
  }
  return out;
}

void add_list(std::string& out, const std::vector<std::string>& lines, const Style& style) {
  for (const std::string& line : lines)
    out += style.form == Form::terminal ? wrapped(one_line(line), style.width_columns) + "\n"
                                        : fmt::format("- {}\n", one_line(line));
}

// "2026-11-20T12:00" of "2026-11-20T12:00:31Z"
std::string to_the_minute(const std::string& started) { return started.substr(0, 16); }

std::string devices_text(const Side& side) {
  std::set<std::string> devices;
  for (const ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records)
      if (record.result.device && !record.result.device->name.empty())
        devices.insert(one_line(record.result.device->name));
  return fmt::format("{}", fmt::join(devices, " | "));
}

// The first of several runs, and how many more there are. A part of a run is named by its inputs: then by the run.
std::string from_text(const Side& side) {
  if (side.runs.empty()) return side.name;
  const std::string& first = side.runs.front().path;
  return side.runs.size() == 1 ? first : fmt::format("{} and {} more", first, side.runs.size() - 1);
}

std::string sides_text(const Comparison& comparison, const Style& style) {
  const auto any = [&comparison](auto&& has) {
    return std::any_of(comparison.side_facts.begin(), comparison.side_facts.end(), has);
  };
  const bool inputs_differ = any([](const SideFacts& facts) { return !facts.inputs.empty(); });
  const bool dated = any([](const SideFacts& facts) { return !facts.started.empty(); });
  results::Table table;
  table.columns = {"side"};
  if (inputs_differ) table.columns.emplace_back("inputs");
  for (const char* column : {"runs", "cases"}) table.columns.emplace_back(column);
  if (dated) table.columns.emplace_back("started");
  for (const char* column : {"device", "from"}) table.columns.emplace_back(column);
  for (std::size_t s = 0; s < comparison.sides.size(); ++s) {
    const Side& side = comparison.sides[s];
    const SideFacts& facts = comparison.side_facts[s];
    const std::string inputs = fmt::format("{}", fmt::join(facts.inputs, ", "));
    std::vector<record::Cell> row{text_cell(side.label)};
    if (inputs_differ) row.push_back(text_cell(one_line(inputs)));
    row.push_back(record::count_cell(static_cast<std::int64_t>(side.runs.size())));
    row.push_back(record::count_cell(static_cast<std::int64_t>(facts.cases)));
    if (dated) row.push_back(text_cell(to_the_minute(facts.started)));
    row.push_back(text_cell(devices_text(side)));
    row.push_back(text_cell(from_text(side)));
    table.rows.push_back(std::move(row));
  }
  std::string out =
      heading(fmt::format("Sides (the baseline is {})", comparison.sides[0].label), style) + spelt(table, style);
  if (!comparison.side_notes.empty() && style.form == Form::markdown) out += "\n";
  add_list(out, comparison.side_notes, style);
  return out;
}

std::string differences_text(const Comparison& comparison, const Style& style) {
  std::string out = heading("What differs about machine, versions and settings", style);
  if (comparison.differences.items.empty()) {
    const bool inputs_differ = std::any_of(comparison.side_facts.begin(), comparison.side_facts.end(),
                                           [](const SideFacts& facts) { return !facts.inputs.empty(); });
    add_list(out, {inputs_differ ? "nothing in the records, beside the inputs above" : "nothing in the records"},
             style);
  } else {
    results::Table table;
    table.columns = {"item"};
    std::size_t widest_item = 4;
    for (const Difference& difference : comparison.differences.items)
      widest_item = std::max(widest_item, display_width(difference.item));
    for (const Side& side : comparison.sides) table.columns.push_back(side.label);
    constexpr std::size_t kGap = 2, kNarrowest = 12;
    const std::size_t sides = comparison.sides.size(), used = widest_item + kGap * sides;
    const std::size_t room =
        std::max(kNarrowest, style.width_columns > used ? (style.width_columns - used) / sides : 0);
    for (const Difference& difference : comparison.differences.items) {
      std::vector<record::Cell> row{text_cell(difference.item)};
      for (const std::string& value : difference.values)
        row.push_back(text_cell(style.form == Form::terminal ? fit_to_width(value, room) : value));
      table.rows.push_back(std::move(row));
    }
    out += spelt(table, style);
  }
  std::vector<std::string> untold;
  for (std::size_t s = 0; s < comparison.sides.size(); ++s) {
    const std::vector<std::string>& items = comparison.differences.untold[s];
    const auto all = comparison.differences.untold.begin();
    const bool is_told =
        std::find(all, all + static_cast<std::ptrdiff_t>(s), items) != all + static_cast<std::ptrdiff_t>(s);
    if (items.empty() || is_told) continue;
    std::vector<std::string> sides;  // that leave out the same
    for (std::size_t other = s; other < comparison.sides.size(); ++other)
      if (comparison.differences.untold[other] == items) sides.push_back(comparison.sides[other].label);
    constexpr std::size_t kShown = 6;
    const std::vector<std::string> first(items.begin(),
                                         items.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, items.size())));
    untold.push_back(fmt::format("{} {} not say: {}{}", fmt::join(sides, ", "), sides.size() == 1 ? "does" : "do",
                                 fmt::join(first, ", "),
                                 items.size() > kShown ? fmt::format(" and {} more", items.size() - kShown) : ""));
  }
  if (!untold.empty() && style.form == Form::markdown) out += "\n";
  add_list(out, untold, style);
  return out;
}

// "step, ms: 5th percentile of the steps; lower is better"
std::string metric_heading(const ComparedMetric& metric) {
  std::string text = metric.name;
  const std::set<std::string> units = units_of(metric);
  if (units.size() == 1 && !units.begin()->empty()) text += fmt::format(", {}", *units.begin());
  std::set<std::string> statistics;
  bool has_several_runs = false;
  for (const ComparedCase& c : metric.cases)
    for (const Entry& entry : c.entries)
      if (is_compared(entry) && !entry.word && interval_text(entry) != "exact")
        statistics.insert(statistic_name(entry.statistic)), has_several_runs = has_several_runs || entry.runs > 1;
  if (!statistics.empty()) text += fmt::format(": {} of the steps", fmt::join(statistics, " or "));
  if (has_several_runs && !statistics.empty()) text += ", and of several runs the geometric mean";
  if (metric.better != Direction::neither)
    text += fmt::format("; {} is better", metric.better == Direction::lower_is_better ? "lower" : "higher");
  return text;
}

void add_part(std::vector<std::string>& parts, const std::string& title, const std::vector<std::string>& lines,
              const Style& style) {
  if (lines.empty()) return;
  std::string part = heading(title, style);
  add_list(part, lines, style);
  parts.push_back(std::move(part));
}

bool fits_width(const results::Table& table, std::size_t width_columns) {
  std::istringstream lines(results::to_terminal(table, width_columns));
  for (std::string line; std::getline(lines, line);)
    if (display_width(line) > width_columns) return false;
  return true;
}

// So that a table that is broken has the verdict beside the ratio.
void put_verdict_before_interval(results::Table& table) {
  const auto verdict = std::find(table.columns.begin(), table.columns.end(), "verdict");
  if (verdict == table.columns.end() || verdict == table.columns.begin()) return;
  const auto place = verdict - table.columns.begin();
  if (!table.columns[static_cast<std::size_t>(place) - 1].ends_with(" interval")) return;
  std::swap(*verdict, *(verdict - 1));
  for (std::vector<record::Cell>& row : table.rows) std::swap(*(row.begin() + place), *(row.begin() + place - 1));
}

std::string metric_text(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                        const NumberedNotes& notes, const Style& style) {
  std::string out = heading(metric_heading(metric), style);
  results::Table table = metric_table(comparison, metric, test, notes);
  if (table.rows.empty()) {
    add_list(out, {"nothing could be compared"}, style);
    return out;
  }
  // The verdict stands beside its figures as long as anything else can go.
  const auto is_too_wide = [&] { return style.form == Form::terminal && !fits_width(table, style.width_columns); };
  std::vector<std::string> dropped;
  for (const std::string& column : {std::string(runs_needed_column), other_ratio_column(comparison, metric)})
    if (is_too_wide() && drop_column(table, column)) dropped.push_back(column);
  if (is_too_wide()) put_verdict_before_interval(table);
  out += spelt(table, style);
  if (!dropped.empty())
    add_list(out, {fmt::format("columns left out to fit the terminal: {}", fmt::join(dropped, ", "))}, style);
  return out;
}

std::string side_by_side_text(const Comparison& comparison, const NumberedNotes& notes, const Style& style) {
  std::vector<std::string> metrics;
  for (const ComparedMetric& metric : comparison.metrics) {
    const std::set<std::string> units = units_of(metric);
    const bool has_unit = units.size() == 1 && !units.begin()->empty();
    metrics.push_back(has_unit ? fmt::format("{} in {}", metric.name, *units.begin()) : metric.name);
  }
  std::string out = heading(fmt::format("Metrics side by side: {}", fmt::join(metrics, ", ")), style);
  std::vector<std::string> tables;
  for (const results::Table& table : tables_side_by_side(comparison, notes, [&style](const results::Table& wider) {
         return style.form == Form::markdown || fits_width(wider, style.width_columns);
       }))
    if (!table.rows.empty()) tables.push_back(spelt(table, style));
  if (tables.empty()) add_list(out, {"nothing could be compared"}, style);
  out += fmt::format("{}", fmt::join(tables, "\n"));
  return out;
}

std::string text_of(const Comparison& comparison, const TestOptions& test, const Style& style,
                    const ReportOptions& options) {
  std::vector<std::string> parts;
  // Whoever cannot have what was asked for wants to know that, and what to do, before all else.
  const std::vector<std::string> why_nothing = why_nothing_was_compared(comparison);
  add_part(parts, "Nothing could be compared", why_nothing, style);
  parts.push_back(sides_text(comparison, style));
  const NumberedNotes notes(comparison);
  if (why_nothing.empty()) {
    parts.push_back(differences_text(comparison, style));
    if (options.side_by_side)
      parts.push_back(side_by_side_text(comparison, notes, style));
    else
      for (const ComparedMetric& metric : comparison.metrics)
        parts.push_back(metric_text(comparison, metric, test, notes, style));
    add_part(parts, "How to settle 'cannot tell'", what_would_settle(comparison, options.by), style);
    add_part(parts, "Notes", notes.lines(), style);
    add_part(parts, "Not compared", refusals_of(comparison), style);
  }
  std::vector<std::string> rest = comparison.unmatched;
  rest.insert(rest.end(), comparison.unknown.begin(), comparison.unknown.end());
  add_part(parts, "Cases without a partner, and inputs that one side lacks", rest, style);
  if (!why_nothing.empty()) parts.push_back(differences_text(comparison, style));
  if (options.tells_test) add_part(parts, "How it was tested", test_lines(test), style);
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

std::vector<std::string> test_lines(const TestOptions& test) {
  return {fmt::format("same: the {:g}% interval of the ratio lies within {:g}% of 1, either way; faster or slower: it "
                      "leaves out 1; else cannot tell",
                      test.confidence * 100, test.threshold * 100),
          fmt::format("interval: with several runs on both sides from how much they differ (Student's t), wider where "
                      "all runs of one side came first. With single runs from their steps and how similar neighbours "
                      "are. Runs of one thing are taken to differ by {:g}% at least",
                      test.run_to_run * 100),
          test.states > 0 ? fmt::format("states: a machine may have two speeds, up to {:g}% apart, each for a whole "
                                        "run. Smaller differences need {} runs a side or more for a verdict",
                                        test.states * 100, fewest_runs_within_states(1 - test.confidence))
                          : std::string("states: the machine is taken to have one (--states 0)"),
          "slow steps: the mean and the 5th percentile are both tested. If either shows a worse B, 'same' and 'faster' "
          "become 'differs in its tail' or 'cannot tell'. Rates are tested by their means",
          fmt::format("many cases: faster and slower hold among all verdicts of the comparison (Holm, at {:g}%); the "
                      "intervals are those of each case alone",
                      (1 - test.confidence) * 100),
          "runs needed: the runs a side, in all and in turns, that would probably settle it"};
}

std::string comparison_text(const Comparison& comparison, const TestOptions& test, std::size_t width_columns,
                            const ReportOptions& options) {
  return text_of(comparison, test, {Form::terminal, width_columns, options.palette}, options);
}

std::string comparison_markdown(const Comparison& comparison, const TestOptions& test, const ReportOptions& options) {
  return text_of(comparison, test, {Form::markdown, 0, {}}, options);
}

namespace {

// Notes contain semicolons: "[1] the first [2] the second".
std::string numbered(const std::vector<std::string>& notes) {
  if (notes.size() == 1) return notes.front();
  std::string text;
  for (std::size_t i = 0; i < notes.size(); ++i) text += fmt::format("{}[{}] {}", i > 0 ? " " : "", i + 1, notes[i]);
  return text;
}

}  // namespace

std::string comparison_csv(const Comparison& comparison, const ReportOptions& options) {
  if (options.side_by_side) {
    const auto tables = tables_side_by_side(comparison, {}, [](const results::Table&) { return true; });
    return tables.empty() ? "" : results::to_csv(tables.front());
  }
  results::Table table;
  table.columns = {"metric", "workload"};
  table.columns.insert(table.columns.end(), comparison.axes.begin(), comparison.axes.end());
  for (const char* column :
       {"unit", "side", "from", "value", "ratio", "low", "high", "verdict", "statistic", "runs", "items_per_dollar",
        "reason", "notes", "p_value", "p_adjusted", "runs_to_settle", "other_statistic", "other_ratio"})
    table.columns.emplace_back(column);
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (std::size_t s = 0; s < c.entries.size(); ++s) {
        const Entry& entry = c.entries[s];
        std::vector<record::Cell> row{text_cell(metric.name), text_cell(c.workload)};
        for (const std::string& value : c.axis_values) row.push_back(text_cell(value));
        const std::string missing = entry.kind == Entry::Kind::missing ? "no such case" : entry.reason;
        for (record::Cell& cell : std::vector<record::Cell>{
                 text_cell(c.unit), text_cell(comparison.sides[s].label), text_cell(comparison.sides[s].name),
                 value_cell(entry), record::number_cell(entry.ratio), record::number_cell(entry.low),
                 record::number_cell(entry.high), text_cell(entry.verdict),
                 text_cell(entry.value ? statistic_name(entry.statistic) : ""),
                 record::count_cell(static_cast<std::int64_t>(entry.runs)), record::number_cell(entry.items_per_dollar),
                 text_cell(missing), text_cell(numbered(entry.notes)), record::number_cell(entry.chance),
                 record::number_cell(entry.adjusted_chance), runs_needed_cell(entry),
                 text_cell(entry.other_ratio ? statistic_name(other_than(entry.statistic)) : ""),
                 record::number_cell(entry.other_ratio)})
          row.push_back(std::move(cell));
        table.rows.push_back(std::move(row));
      }
  return results::to_csv(table);
}

}  // namespace assay::host::compare
