#include "compare/report.hpp"

#include "common/text_format.hpp"
#include "compare/report_tables.hpp"

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
};

std::string spelt(const results::Table& table, const Style& style) {
  return style.form == Form::terminal ? results::to_terminal(table, style.width_columns) : results::to_markdown(table);
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

std::string sides_text(const Comparison& comparison, const Style& style) {
  results::Table table;
  table.columns = {"side", "runs", "cases", "device", "from"};
  for (const Side& side : comparison.sides) {
    std::set<std::string> devices;
    std::size_t cases = 0;
    for (const ComparedRun& run : side.runs) {
      cases = std::max(cases, run.records.size());
      for (const record::CaseRecord& record : run.records)
        if (record.result.device && !record.result.device->name.empty())
          devices.insert(one_line(record.result.device->name));
    }
    table.rows.push_back({text_cell(side.label), record::count_cell(static_cast<std::int64_t>(side.runs.size())),
                          record::count_cell(static_cast<std::int64_t>(cases)),
                          text_cell(fmt::format("{}", fmt::join(devices, " | "))), text_cell(side.name)});
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
    add_list(out, {"nothing that the records say"}, style);
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
    if (items.empty()) continue;
    constexpr std::size_t kShown = 6;
    const std::vector<std::string> first(items.begin(),
                                         items.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, items.size())));
    untold.push_back(fmt::format("{} does not say: {}{}", comparison.sides[s].label, fmt::join(first, ", "),
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
  for (const ComparedCase& c : metric.cases)
    for (const Entry& entry : c.entries)
      if (is_compared(entry) && !entry.word && interval_text(entry) != "exact")
        statistics.insert(statistic_name(entry.statistic));
  if (!statistics.empty()) text += fmt::format(": {} of the steps", fmt::join(statistics, " or "));
  if (metric.better != Direction::neither)
    text += fmt::format("; {} is better", metric.better == Direction::lower_is_better ? "lower" : "higher");
  return text;
}

struct NotedCases {
  std::string text;
  std::vector<std::string> cases;
};

// Cases of one note stand in one line.
// `all`: how many cases there are that a note may be about.
std::vector<std::string> gathered(const std::vector<NotedCases>& notes, std::size_t all) {
  std::vector<std::string> lines;
  for (const NotedCases& note : notes) {
    const bool is_of_all = note.cases.size() == all && all > 1;
    lines.push_back(
        fmt::format("{}: {}", is_of_all ? "all" : fmt::format("{}", fmt::join(note.cases, "; ")), note.text));
  }
  return lines;
}

void note(std::vector<NotedCases>& notes, const std::string& text, const std::string& name) {
  const auto found = std::find_if(notes.begin(), notes.end(), [&](const NotedCases& n) { return n.text == text; });
  if (found == notes.end())
    notes.push_back({text, {name}});
  else if (std::find(found->cases.begin(), found->cases.end(), name) == found->cases.end())
    found->cases.push_back(name);
}

// What is said of the cases below their tables: notes, and why some were not compared.
class Remarks {
 public:
  // `prefix` begins the name of a case in a note: the metric, where several stand in one table. A case is refused for
  // the same reason in all of them.
  void add(const Comparison& comparison, const ComparedMetric& metric, const std::string& prefix) {
    for (const ComparedCase& c : metric.cases)
      for (std::size_t s = 0; s < c.entries.size(); ++s) {
        const Entry& entry = c.entries[s];
        const std::string name = comparison.sides.size() == 2
                                     ? case_name(comparison, c)
                                     : fmt::format("{} {}", comparison.sides[s].label, case_name(comparison, c));
        compared_ += is_compared(entry) ? 1 : 0;
        if (s > 0) cases_.insert(name);
        if (is_compared(entry) && !entry.by_samples && entry.low && *entry.low != *entry.high)
          note(notes_, "no samples on one side: tested by mean, standard deviation and number of steps", prefix + name);
        for (const std::string& text : entry.notes) note(notes_, text, prefix + name);
        if (s > 0 && entry.kind == Entry::Kind::refused) note(refusals_, entry.reason, name);
      }
  }

  void write(std::string& out, const Style& style) const {
    if (style.form == Form::markdown && !notes_.empty()) out += "\n";
    add_list(out, gathered(notes_, compared_), style);
    if (refusals_.empty()) return;
    out += style.form == Form::markdown ? "\nNot compared:\n\n" : "Not compared\n";
    add_list(out, gathered(refusals_, cases_.size()), style);
  }

 private:
  std::vector<NotedCases> notes_, refusals_;
  std::size_t compared_ = 0;
  std::set<std::string> cases_;  // compared or not
};

std::string metric_text(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                        const Style& style) {
  std::string out = heading(metric_heading(metric), style);
  const results::Table table = metric_table(comparison, metric, test);
  if (table.rows.empty())
    add_list(out, {"nothing could be compared"}, style);
  else
    out += spelt(table, style);
  Remarks remarks;
  remarks.add(comparison, metric, "");
  remarks.write(out, style);
  return out;
}

bool fits_width(const results::Table& table, std::size_t width_columns) {
  std::istringstream lines(results::to_terminal(table, width_columns));
  for (std::string line; std::getline(lines, line);)
    if (display_width(line) > width_columns) return false;
  return true;
}

std::string side_by_side_text(const Comparison& comparison, const Style& style) {
  std::vector<std::string> metrics;
  for (const ComparedMetric& metric : comparison.metrics) {
    const std::set<std::string> units = units_of(metric);
    const bool has_unit = units.size() == 1 && !units.begin()->empty();
    metrics.push_back(has_unit ? fmt::format("{} in {}", metric.name, *units.begin()) : metric.name);
  }
  std::string out = heading(fmt::format("Metrics side by side: {}", fmt::join(metrics, ", ")), style);
  std::vector<std::string> tables;
  for (const results::Table& table : tables_side_by_side(comparison, [&style](const results::Table& wider) {
         return style.form == Form::markdown || fits_width(wider, style.width_columns);
       }))
    if (!table.rows.empty()) tables.push_back(spelt(table, style));
  if (tables.empty()) add_list(out, {"nothing could be compared"}, style);
  out += fmt::format("{}", fmt::join(tables, "\n"));
  Remarks remarks;
  for (const ComparedMetric& metric : comparison.metrics) remarks.add(comparison, metric, metric.name + " of ");
  remarks.write(out, style);
  return out;
}

std::string text_of(const Comparison& comparison, const TestOptions& test, const Style& style,
                    const ReportOptions& options) {
  std::vector<std::string> parts{sides_text(comparison, style), differences_text(comparison, style)};
  if (comparison.metrics.empty()) {  // "all" of them, where no case of two sides has one
    std::string part = heading("Metrics", style);
    add_list(part, {"nothing could be compared: no two sides have a metric in common"}, style);
    parts.push_back(std::move(part));
  } else if (options.side_by_side) {
    parts.push_back(side_by_side_text(comparison, style));
  } else {
    for (const ComparedMetric& metric : comparison.metrics)
      parts.push_back(metric_text(comparison, metric, test, style));
  }
  std::vector<std::string> rest = comparison.unmatched;
  rest.insert(rest.end(), comparison.unknown.begin(), comparison.unknown.end());
  if (!rest.empty()) {
    std::string part = heading("Cases without a partner, and inputs that one side does not say", style);
    add_list(part, rest, style);
    parts.push_back(std::move(part));
  }
  if (options.tells_test) {
    std::string part = heading("How it was tested", style);
    add_list(part, test_lines(test), style);
    parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

std::vector<std::string> test_lines(const TestOptions& test) {
  return {fmt::format("same: the {:g}% interval of the ratio lies within {:g}% of 1, either way; faster or slower: it "
                      "leaves out 1; else cannot tell",
                      test.confidence * 100, test.threshold * 100),
          fmt::format("interval: by leaving out stretches of steps (jackknife); runs of one thing are taken to differ "
                      "by {:g}%, more where steps are restless, unless both sides have several runs: then by what they "
                      "do differ (Student's t)",
                      test.run_to_run * 100),
          "one run a side cannot tell a slower program from a machine that was slower at that hour; three or more, "
          "taken in turns, can"};
}

std::string comparison_text(const Comparison& comparison, const TestOptions& test, std::size_t width_columns,
                            const ReportOptions& options) {
  return text_of(comparison, test, {Form::terminal, width_columns}, options);
}

std::string comparison_markdown(const Comparison& comparison, const TestOptions& test, const ReportOptions& options) {
  return text_of(comparison, test, {Form::markdown, 0}, options);
}

std::string comparison_csv(const Comparison& comparison, const ReportOptions& options) {
  if (options.side_by_side) {
    const auto tables = tables_side_by_side(comparison, [](const results::Table&) { return true; });
    return tables.empty() ? "" : results::to_csv(tables.front());
  }
  results::Table table;
  table.columns = {"metric", "workload"};
  table.columns.insert(table.columns.end(), comparison.axes.begin(), comparison.axes.end());
  for (const char* column : {"unit", "side", "from", "value", "ratio", "low", "high", "verdict", "statistic", "runs",
                             "items_per_dollar", "reason", "notes"})
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
                 text_cell(missing), text_cell(fmt::format("{}", fmt::join(entry.notes, "; ")))})
          row.push_back(std::move(cell));
        table.rows.push_back(std::move(row));
      }
  return results::to_csv(table);
}

}  // namespace assay::host::compare
