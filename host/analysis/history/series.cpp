#include "history/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "common/parallel.hpp"
#include "compare/differences.hpp"
#include "compare/location.hpp"
#include "compare/metric.hpp"
#include "compare/sides.hpp"
#include "compare/verdict.hpp"
#include "record/json.hpp"
#include "results/case_text.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"
#include "results/run_source.hpp"

namespace assay::host::history {
namespace {

namespace fs = std::filesystem;

// Reads records where the index says that they are, and what a run was made in, each once.
class Records {
 public:
  // Most of the time of a long history is that of parsing records.
  std::vector<std::optional<record::CaseRecord>> at(const std::vector<const IndexedRecord*>& places) {
    std::vector<std::optional<record::CaseRecord>> found(places.size());
    for_each_in_parallel(places.size(), [&](std::size_t i) {
      if (places[i]->bytes > 0) found[i] = of_line(*places[i]);
    });
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i]->bytes == 0) found[i] = of_summary(*places[i]);
    return found;
  }

  // What these runs were made in.
  void prepare(const std::vector<const IndexedRecord*>& places) {
    std::vector<std::pair<const fs::path, results::RunSource>*> fresh;
    for (const IndexedRecord* place : places)
      if (const auto [entry, is_new] = sources_.try_emplace(place->run); is_new) fresh.push_back(&*entry);
    for_each_in_parallel(fresh.size(), [&](std::size_t i) { fresh[i]->second = source_at(fresh[i]->first); });
  }

  // A run of one record, as compare takes it.
  compare::ComparedRun run_of(const fs::path& run, record::CaseRecord record) {
    const results::RunSource& source = source_of(run);
    return {run.string(), {std::move(record)}, source.environment, source.experiment, source.environments};
  }
  std::string revision_of(const fs::path& run, const record::CaseRecord& record) {
    const record::Environment* environment = source_of(run).environment_of(record);
    return environment ? environment->fact_or("assay.revision", "") : "";
  }

 private:
  static std::optional<record::CaseRecord> of_line(const IndexedRecord& place) {
    std::ifstream file(place.run / "cases.jsonl", std::ios::binary);
    std::string line(static_cast<std::size_t>(place.bytes), '\0');
    file.seekg(place.offset);
    if (!file.read(line.data(), static_cast<std::streamsize>(line.size()))) return std::nullopt;
    return record::record_from_line(line);
  }
  std::optional<record::CaseRecord> of_summary(const IndexedRecord& place) {
    const auto [entry, is_new] = summaries_.try_emplace(place.run);
    if (is_new)
      if (auto summary = results::read_summary_file(place.run)) entry->second = std::move(summary->records);
    const auto index = static_cast<std::size_t>(place.offset);
    return index < entry->second.size() ? std::optional(entry->second[index]) : std::nullopt;
  }
  static results::RunSource source_at(const fs::path& run) {
    std::vector<std::string> ignored;  // the index has reported them
    if (results::is_folder(run)) return results::run_source(run, ignored);
    results::RunSource source;
    if (auto summary = results::read_summary_file(run)) {
      source.environment = std::move(summary->environment);
      source.environments = std::move(summary->environments);
    }
    return source;
  }
  const results::RunSource& source_of(const fs::path& run) const { return sources_.at(run); }
  std::map<fs::path, std::vector<record::CaseRecord>> summaries_;
  std::map<fs::path, results::RunSource> sources_;
};

std::string key_of(const IndexedRecord& place) { return place.experiment + "\n" + place.series; }

// A series that is being put together.
struct Growing {
  Series series;
  std::vector<record::CaseRecord> records;  // one for each point
  compare::MetricOfRecord metric;
};

// The points that take part: those that had the machine to themselves, where these are most of them.
std::vector<std::size_t> taking_part(const std::vector<Point>& points) {
  std::vector<std::size_t> all, quiet;
  for (std::size_t i = 0; i < points.size(); ++i) {
    all.push_back(i);
    if (!points[i].disturbed) quiet.push_back(i);
  }
  return 2 * quiet.size() >= all.size() ? quiet : all;
}

// What does not explain a figure, or stands there twice: the time of day, how a run was called, hashes beside
// versions.
bool is_beside_the_point(const std::string& item) {
  return item.starts_with("command") || item.starts_with("invocation") || item == "captured" ||
         item.starts_with("job.") || item == "device.uuid" || item == "memory.available_mib";
}

std::vector<Change::Difference> differences_between(std::vector<compare::ComparedRun> before,
                                                    std::vector<compare::ComparedRun> after) {
  std::vector<compare::Side> sides;
  sides.push_back({"A", before.front().path, std::move(before)});
  sides.push_back({"B", after.front().path, std::move(after)});
  std::vector<Change::Difference> found;
  for (compare::Difference& difference : compare::find_differences(sides).items)
    if (!is_beside_the_point(difference.item))
      found.push_back({std::move(difference.item), std::move(difference.values[0]), std::move(difference.values[1])});
  return found;
}

void tell_changes(Growing& growing, const std::vector<std::size_t>& places, const std::vector<ChangePoint>& found,
                  Records& records, const SeriesOptions& options) {
  Series& series = growing.series;
  // Some runs on either side, so that machines that take turns are no difference.
  const auto runs_of = [&](std::size_t begin, std::size_t end) {
    std::vector<compare::ComparedRun> runs;
    for (std::size_t i = begin; i < end; ++i)
      runs.push_back(records.run_of(series.points[places[i]].run, growing.records[places[i]]));
    return runs;
  };
  constexpr std::size_t most_runs = 5;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t at = found[i].at, end = i + 1 < found.size() ? found[i + 1].at : places.size();
    Change change;
    change.at = places[at];
    change.word = compare::verdict_word(found[i].outcome, options.metric, growing.metric);
    change.worse = compare::is_worse(found[i].outcome, series.better);
    change.ratio = found[i].ratio, change.low = found[i].low, change.high = found[i].high;
    change.run_before = series.points[places[found[i].before]].run, change.run_after = series.points[change.at].run;
    change.differences = differences_between(runs_of(std::max(begin, at - std::min(at, most_runs)), at),
                                             runs_of(at, std::min(end, at + most_runs)));
    series.changes.push_back(std::move(change));
    begin = at;
  }
}

// The logarithm of the statistic of a run's steps; of its mean where the record keeps no steps.
double level_of(const compare::RunFigure& run, compare::Statistic statistic) {
  const double value =
      run.exact || run.samples.empty() ? std::log(run.mean) : compare::log_location(run.samples, statistic, 0);
  return run.scale ? std::log(*run.scale) - value : value;
}

void find_changes_of_all(std::vector<Growing>& all, Records& records, const SeriesOptions& options) {
  std::vector<std::vector<std::size_t>> places;
  std::vector<std::vector<double>> levels;
  for (const Growing& growing : all) {
    places.push_back(taking_part(growing.series.points));
    std::vector<double>& of_one = levels.emplace_back();
    for (const std::size_t i : places.back()) of_one.push_back(std::log(growing.series.points[i].value));
  }
  const auto found =
      find_changes(levels, ChangeOptions{.threshold = options.test.threshold, .confidence = options.test.confidence});
  for (std::size_t i = 0; i < all.size(); ++i) tell_changes(all[i], places[i], found[i], records, options);
}

// Series of one experiment that have equal axes are named by the parameters that differ, two at most.
void tell_apart(std::vector<Growing>& all) {
  std::map<std::string, std::vector<Growing*>> alike;
  for (Growing& each : all)
    alike[each.series.experiment + "\n" + each.series.workload + "\n" + each.series.label + "\n" + each.series.device +
          fmt::format("\n{}", each.series.ranks)]
        .push_back(&each);
  for (auto& [ignored, group] : alike) {
    if (group.size() < 2) continue;
    std::map<std::string, std::set<std::string>> values;
    for (const Growing* each : group)
      for (const auto& [key, value] : each->records.front().identity.params) values[key].insert(to_text(value));
    for (Growing* each : group) {
      int left = 2;
      for (const auto& [key, value] : each->records.front().identity.params)
        if (values[key].size() > 1 && left-- > 0)
          each->series.label += fmt::format("{}{}={}", each->series.label.empty() ? "" : " ", key, to_text(value));
    }
  }
}

}  // namespace

SeriesFound find_series(const Index& index, const SeriesOptions& options, std::vector<std::string>& warnings) {
  SeriesFound found;
  Records records;
  std::vector<Growing> all;
  std::map<std::string, std::size_t> places;
  std::set<std::string> metrics;
  std::size_t unreadable = 0, copies = 0;
  std::set<std::string> seen;
  const std::vector<IndexedRecord> indexed = index.records();
  const std::set<fs::path> of_runs(options.of_runs.begin(), options.of_runs.end());
  std::set<std::string> wanted;
  bool with_ab = options.with_ab;
  for (const IndexedRecord& place : indexed)
    if (of_runs.contains(place.run)) {
      wanted.insert(key_of(place));
      with_ab |= place.of_ab;
    }
  std::vector<const IndexedRecord*> chosen;
  for (const IndexedRecord& place : indexed) {
    if (!options.name.empty() && place.experiment != options.name && place.workload != options.name) continue;
    if (!of_runs.empty() && !wanted.contains(key_of(place))) continue;
    if (!options.since.empty() && place.started < options.since) continue;
    if (place.of_ab && !with_ab) {
      ++found.of_ab;
      continue;
    }
    if (place.status != "ok") {
      ++found.not_ok;
      continue;
    }
    chosen.push_back(&place);
  }
  records.prepare(chosen);
  std::vector<std::optional<record::CaseRecord>> read = records.at(chosen);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const IndexedRecord& place = *chosen[i];
    std::optional<record::CaseRecord>& record = read[i];
    if (!record) {
      ++unreadable;
      continue;
    }
    const auto metric = compare::metric_of(*record, options.metric);
    if (!metric) {
      ++found.without_metric;
      for (std::string& name : compare::metric_names(*record)) metrics.insert(std::move(name));
      continue;
    }
    const auto [entry, is_new] = places.try_emplace(key_of(place), all.size());
    if (is_new) {
      Growing growing;
      growing.series.experiment = place.experiment, growing.series.workload = place.workload;
      growing.series.label = results::case_label(record->identity.axes);
      growing.series.device = record->result.device ? record->result.device->name : "";
      growing.series.ranks = record->identity.ranks.value_or(1);
      growing.series.unit = metric->unit, growing.series.better = metric->better;
      growing.metric = *metric;
      all.push_back(std::move(growing));
    }
    Growing& growing = all[entry->second];
    Point point{place.started,
                place.run,
                place.host,
                records.revision_of(place.run, *record),
                record->identity.index,
                0,
                compare::is_contended(metric->figure)};
    point.value = std::exp(level_of(metric->figure, options.test.statistic));
    // A folder of results that was copied holds the same measurements, to the last bit, in runs of the same names.
    const std::string name = std::filesystem::path(place.run).filename().string();
    if (!place.of_ab && !seen.insert(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", entry->first, name, place.started,
                                                 place.host, record->environment, record->identity.index,
                                                 record->identity.repeat.value_or(0), point.value))
                             .second) {
      ++copies;
      continue;
    }
    growing.series.points.push_back(std::move(point));
    growing.records.push_back(std::move(*record));
  }
  if (copies > 0)
    warnings.push_back(fmt::format("{} {} more than one run, which is a copy, and count{} once", copies,
                                   copies == 1 ? "record stands in" : "records stand in", copies == 1 ? "s" : ""));
  if (unreadable > 0)
    warnings.push_back(fmt::format("{} records are no longer where the index says; ask again", unreadable));
  find_changes_of_all(all, records, options);
  tell_apart(all);
  for (Growing& each : all) found.series.push_back(std::move(each.series));
  if (found.series.empty()) found.metrics.assign(metrics.begin(), metrics.end());
  return found;
}

}  // namespace assay::host::history
