#include "history/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "common/text_format.hpp"
#include "history/sparkline.hpp"

namespace assay::host::history {
namespace {

using Json = nlohmann::ordered_json;

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// From here, where the run lies below.
std::string as_typed(const std::filesystem::path& run) {
  std::error_code error;
  const std::filesystem::path near = std::filesystem::proximate(run, error);
  return error || near.empty() || *near.begin() == ".." ? run.string() : near.string();
}

std::string day_of(const std::string& time) { return one_line(time.substr(0, 10)); }
// "2026-11-28 03:11", UTC as in records.
std::string minute_of(const std::string& time) {
  constexpr std::size_t day = 10, minute = 16;
  if (time.size() < minute || time[day] != 'T') return one_line(time);
  return one_line(time.substr(0, day) + " " + time.substr(day + 1, minute - day - 1));
}

std::string name_of(const std::string& item) {
  if (item == "assay.revision") return "revision";
  if (item == "gpu.driver" || item == "device.driver") return "driver";
  if (item == "os.hostname") return "host";
  return item;
}

// What people look for first stands first.
int rank_of(const std::string& item) {
  const std::vector<std::string> order{"assay.revision", "device.driver", "gpu.driver", "os.hostname",
                                       "plugin.version"};
  const auto found = std::find(order.begin(), order.end(), item);
  if (found != order.end()) return static_cast<int>(found - order.begin());
  if (item.starts_with("file ")) return 10;
  if (item.starts_with("measure.") || item.starts_with("variables.")) return 8;
  return item.starts_with("library ") || item.starts_with("algorithm ") ? 20 : 9;
}

// "revision ab12cd -> 99ff00, driver 580 -> 590, and 7 more".
std::string differences_text(std::vector<Change::Difference> all) {
  constexpr std::size_t most = 4;
  std::stable_sort(all.begin(), all.end(), [](const Change::Difference& a, const Change::Difference& b) {
    return rank_of(a.item) < rank_of(b.item);
  });
  std::vector<std::string> texts;
  std::set<std::string> named;
  std::size_t left_out = 0;
  for (const Change::Difference& d : all) {
    if (!named.insert(name_of(d.item)).second) continue;  // two places that say the driver
    if (texts.size() == most)
      ++left_out;
    else
      texts.push_back(fmt::format("{} {} -> {}", name_of(d.item), d.before.empty() ? "untold" : shortened(d.before),
                                  d.after.empty() ? "untold" : shortened(d.after)));
  }
  if (left_out > 0) texts.push_back(fmt::format("and {} more", left_out));
  return texts.empty() ? "no recorded change explains it" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string figure_text(double value, const std::string& unit) {
  return fmt::format("{}{}{}", significant_digits(value, 4), unit.empty() ? "" : " ", unit);
}

std::string heading_of(const Series& s) {
  std::string text = s.label.empty() ? "(no sweep)" : s.label;
  if (s.ranks > 1) text += fmt::format(", {} ranks", s.ranks);
  return s.device.empty() ? text : fmt::format("{}, {}", text, s.device);
}

void add_lines(std::string& page, const std::string& indent, const std::string& text, std::size_t width) {
  for (const std::string& line : wrapped(text, std::max<std::size_t>(width, indent.size() + 20) - indent.size()))
    page += indent + line + "\n";
}

void add_series(std::string& page, const Series& s, std::size_t width, const Palette& palette) {
  std::vector<double> values;
  std::size_t disturbed = 0;
  for (const Point& point : s.points) {
    values.push_back(point.value);
    disturbed += point.disturbed ? 1 : 0;
  }
  add_lines(page, "  ", one_line(heading_of(s)), width);
  const std::size_t columns = std::clamp<std::size_t>(width > 60 ? width - 56 : 8, 8, 60);
  page += fmt::format("    {}  {}, {}{}\n", sparkline(values, columns), counted(values.size(), "run", "runs"),
                      values.size() > 1 ? significant_digits(values.front(), 4) + " -> " : "",
                      figure_text(values.back(), one_line(s.unit)));
  for (const Change& change : s.changes) {
    const std::size_t begin = page.size();
    add_lines(page, "    ", change_text(s, change), width);
    const Tone tone = change.worse ? Tone::bad : tone_of(change.word);
    page.replace(page.find(change.word, begin), change.word.size(), palette.paint(change.word, tone));
    if (change.run_before != change.run_after)
      page += fmt::format("      assay compare {} {}\n", one_line(as_typed(change.run_before)),
                          one_line(as_typed(change.run_after)));
  }
  if (disturbed > 0)
    add_lines(page, "    ",
              fmt::format("during {} of them others used the machine or the GPU", counted(disturbed, "run", "runs")),
              width);
}

struct ExperimentLine {
  std::string name, first, last;
  std::size_t runs = 0, records = 0, ok = 0;
  std::set<std::string> hosts, revisions;
};

std::vector<ExperimentLine> lines_of_experiments(const std::vector<IndexedRun>& runs) {
  std::map<std::string, ExperimentLine> by_name;
  for (const IndexedRun& run : runs) {
    ExperimentLine& line = by_name[run.experiment];
    line.name = run.experiment;
    ++line.runs;
    line.records += run.records, line.ok += run.ok;
    line.hosts.insert(run.hosts.begin(), run.hosts.end());
    if (!run.revision.empty()) line.revisions.insert(run.revision);
    if (!run.first_started.empty() && (line.first.empty() || run.first_started < line.first))
      line.first = run.first_started;
    line.last = std::max(line.last, run.last_started);
  }
  std::vector<ExperimentLine> lines;
  for (auto& [name, line] : by_name) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::string shortened(const std::string& text) {
  constexpr std::size_t shown = 10;
  const std::size_t plus = text.find('+');
  const std::string digits = text.substr(0, plus);
  const bool is_hash = digits.size() >= 32 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_hash) return digits.substr(0, shown) + (plus == std::string::npos ? "" : text.substr(plus));
  return fit_to_width(one_line(text), 48);
}

std::string change_text(const Series& series, const Change& change) {
  // "slower" and "less" say which way: percents count in it.
  const double way = change.ratio < 1 ? -1 : 1;
  const auto percent = [way](double ratio) { return way * (ratio - 1) * 100; };
  std::string interval;
  if (change.low && change.high) {
    const double of_low = percent(*change.low), of_high = percent(*change.high);
    interval = fmt::format(" ({:.1f} to {:.1f}%)", std::min(of_low, of_high), std::max(of_low, of_high));
  }
  return fmt::format("{:.1f}% {} since {}{}; {}", percent(change.ratio), change.word,
                     minute_of(series.points[change.at].started), interval, differences_text(change.differences));
}

std::string overview_text(const std::vector<IndexedRun>& runs, std::size_t width_columns) {
  constexpr std::size_t beside_name = 60;
  const std::vector<ExperimentLine> lines = lines_of_experiments(runs);
  std::size_t longest = std::string_view("experiment").size();
  for (const ExperimentLine& line : lines) longest = std::max(longest, display_width(line.name));
  longest = std::min(longest, std::max<std::size_t>(width_columns, beside_name + 10) - beside_name);
  const auto row = [longest](const std::string& name, const auto&... cells) {
    return fmt::format("{}  {:>5}  {:>9}  {:>5}  {:>9}  {:>10}  {:>10}\n",
                       pad_to(fit_to_width(one_line(name), longest), longest, Align::left), cells...);
  };
  std::string page = row("experiment", "runs", "ok", "hosts", "revisions", "first", "last");
  for (const ExperimentLine& line : lines)
    page +=
        row(line.name, line.runs, fmt::format("{}/{}", line.ok, line.records), line.hosts.size(), line.revisions.size(),
            line.first.empty() ? "?" : day_of(line.first), line.last.empty() ? "?" : day_of(line.last));
  return page;
}

std::string history_text(const SeriesFound& found, const SeriesOptions& options, std::size_t width_columns,
                         const Palette& palette) {
  std::string page;
  std::string group;
  for (const Series& series : found.series) {
    const std::string name = series.experiment == series.workload
                                 ? series.experiment
                                 : fmt::format("{} ({})", series.experiment, series.workload);
    if (name != group) page += fmt::format("{}{}: {}\n", page.empty() ? "" : "\n", one_line(name), options.metric);
    group = name;
    add_series(page, series, width_columns, palette);
  }
  if (found.not_ok > 0 || found.without_metric > 0 || found.of_ab > 0) {
    std::vector<std::string> parts;
    if (found.of_ab > 0)
      parts.push_back(counted(found.of_ab, "case", "cases") + " of `assay ab` (--with-ab shows them)");
    if (found.not_ok > 0) parts.push_back(counted(found.not_ok, "case that was not ok", "cases that were not ok"));
    if (found.without_metric > 0)
      parts.push_back(counted(found.without_metric, "case", "cases") + " without " + options.metric);
    page += fmt::format("{}left out: {}\n", page.empty() ? "" : "\n", fmt::join(parts, ", "));
  }
  return page;
}

nlohmann::ordered_json history_json(const std::vector<IndexedRun>& runs, const SeriesFound& found,
                                    const SeriesOptions& options) {
  Json of_runs = Json::array(), of_series = Json::array();
  for (const IndexedRun& run : runs)
    of_runs.push_back({{"run", run.run.string()},
                       {"experiment", run.experiment},
                       {"revision", run.revision},
                       {"hosts", run.hosts},
                       {"records", run.records},
                       {"ok", run.ok},
                       {"first_started", run.first_started},
                       {"last_started", run.last_started}});
  for (const Series& s : found.series) {
    Json points = Json::array(), changes = Json::array();
    for (const Point& p : s.points)
      points.push_back({{"started", p.started},
                        {"value", p.value},
                        {"run", p.run.string()},
                        {"host", p.host},
                        {"revision", p.revision},
                        {"disturbed", p.disturbed}});
    for (const Change& c : s.changes) {
      Json differences = Json::array();
      for (const Change::Difference& d : c.differences)
        differences.push_back({{"item", d.item}, {"before", d.before}, {"after", d.after}});
      changes.push_back({{"since", s.points[c.at].started},
                         {"verdict", c.word},
                         {"worse", c.worse},
                         {"ratio", c.ratio},
                         {"low", c.low ? Json(*c.low) : Json()},
                         {"high", c.high ? Json(*c.high) : Json()},
                         {"run_before", c.run_before.string()},
                         {"run_after", c.run_after.string()},
                         {"differences", differences}});
    }
    of_series.push_back({{"experiment", s.experiment},
                         {"workload", s.workload},
                         {"case", s.label},
                         {"device", s.device},
                         {"ranks", s.ranks},
                         {"unit", s.unit},
                         {"points", points},
                         {"changes", changes}});
  }
  return {{"schema", "assay.history/1"},
          {"metric", options.metric},
          {"statistic", compare::statistic_name(options.test.statistic)},
          {"runs", of_runs},
          {"series", of_series},
          {"not_ok", found.not_ok},
          {"without_metric", found.without_metric},
          {"of_ab", found.of_ab}};
}

}  // namespace assay::host::history
