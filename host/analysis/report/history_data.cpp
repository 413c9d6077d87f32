#include "report/history_data.hpp"

#include "common/text_format.hpp"
#include "common/utc.hpp"
#include "history/report.hpp"
#include "report/case_data.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

// Seconds since 1970 of each point, which sort and draw without being read again. What is no time, or none that a clock
// here can hold, stands where the run before it stands.
std::vector<std::int64_t> seconds_of(const std::vector<history::Point>& points) {
  std::vector<std::int64_t> seconds;
  for (const history::Point& point : points) {
    const bool is_near = point.started >= "1970" && point.started < "2200";
    const auto time = is_near ? parse_utc(point.started) : std::nullopt;
    const std::int64_t before = seconds.empty() ? 0 : seconds.back();
    seconds.push_back(time ? std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count()
                           : before);
  }
  // The first ones, before which no run stands, with the first that has a time.
  const auto first = std::find_if(seconds.begin(), seconds.end(), [](std::int64_t s) { return s != 0; });
  if (first != seconds.end()) std::fill(seconds.begin(), first, *first);
  return seconds;
}

Json changes_json(const history::Series& series, std::size_t left_out) {
  Json changes = Json::array();
  for (const history::Change& change : series.changes) {
    Json entry{{"text", history::change_text(series, change)}, {"word", change.word}, {"ratio", rounded(change.ratio)}};
    if (change.worse) entry["worse"] = true;
    // A change that lies before the points that are kept has only its text.
    if (change.at > left_out) entry["at"] = change.at - left_out;
    changes.push_back(std::move(entry));
  }
  return changes;
}

const char* text_of(Direction better) {
  if (better == Direction::lower_is_better) return "lower is better";
  return better == Direction::higher_is_better ? "higher is better" : "";
}

}  // namespace

std::vector<fs::path> places_of(const ReportedRuns& reported) {
  std::vector<fs::path> places;
  for (const ReportedRun& run : reported.runs) {
    std::error_code unresolved;
    fs::path place = fs::weakly_canonical(run.path, unresolved);
    if (unresolved) place = fs::absolute(run.path).lexically_normal();
    if (place.filename().empty() || place.filename() == "cases.jsonl") place = place.parent_path();
    places.push_back(std::move(place));
  }
  return places;
}

Json history_json(const ReportedRuns& reported, std::size_t most_points) {
  const ReportedHistory& history = *reported.history;
  const std::vector<fs::path> places = places_of(reported);
  std::multimap<std::pair<fs::path, std::int64_t>, std::size_t> ids;
  std::size_t id = 0;
  for (std::size_t r = 0; r < reported.runs.size(); ++r)
    for (const record::CaseRecord& record : reported.runs[r].table.records)
      ids.emplace(std::pair(places[r], record.identity.index), id++);

  const std::vector<history::Series>& all = history.found.series;
  const auto drawn = static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const history::Series& s) { return s.points.size() > 1; }));
  const std::size_t most = std::max(least_points_of_a_series, most_points / std::max<std::size_t>(drawn, 1));
  NameList hosts, revisions;
  Json series = Json::array();
  for (const history::Series& s : all) {
    if (s.points.size() < 2) continue;
    const std::size_t left_out = s.points.size() - std::min(s.points.size(), most);
    const std::vector<std::int64_t> seconds = seconds_of(s.points);
    Json points = Json::array(), case_ids = Json::array();
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const history::Point& point = s.points[i];
      const auto [begin, end] = ids.equal_range({point.run, point.index});
      for (auto it = begin; it != end; ++it) case_ids.push_back(it->second);
      if (i < left_out) continue;
      Json entry{seconds[i], rounded(point.value), hosts.place_of(one_line(point.host)),
                 revisions.place_of(history::shortened(point.revision))};
      if (point.disturbed) entry.push_back(1);
      points.push_back(std::move(entry));
    }
    Json entry{{"label", one_line(s.label)},          {"device", one_line(s.device)},    {"unit", s.unit},
               {"better", text_of(s.better)},         {"case_ids", std::move(case_ids)}, {"points", std::move(points)},
               {"changes", changes_json(s, left_out)}};
    if (s.ranks > 1) entry["ranks"] = s.ranks;
    if (left_out > 0) entry["left_out"] = left_out;
    series.push_back(std::move(entry));
  }
  return {{"metric", history.options.metric},
          {"series", std::move(series)},
          {"hosts", hosts.names()},
          {"revisions", revisions.names()},
          {"not_ok", history.found.not_ok}};
}

}  // namespace assay::host::report
