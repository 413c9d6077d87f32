#include "report/page_data.hpp"

#include "record/columns.hpp"
#include "report/case_data.hpp"
#include "report/comparison_data.hpp"
#include "report/history_data.hpp"
#include "report/page.hpp"
#include "report/run_data.hpp"
#include "report/thinning.hpp"
#include "results/column_choice.hpp"
#include "results/table.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>

namespace assay::host::report {
namespace {

using Tabled = std::vector<results::TabledRun>;

// What a user chose for a case: the columns that are no figures.
bool is_input(const std::vector<record::CaseRecord>& records, const std::string& column) {
  return std::any_of(records.begin(), records.end(), [&column](const record::CaseRecord& record) {
    const record::CaseIdentity& id = record.identity;
    return record::find(id.axes, column) || record::find(id.params, column) || record::find(id.settings, column) ||
           column == "ranks" || column == "repeat";
  });
}

bool has(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

// A parameter that has one value in each run, and not the same in all of them.
std::vector<std::string> between_runs(const Tabled& runs) {
  std::vector<std::string> keys;
  std::set<std::string> looked_at;
  for (const results::TabledRun& first : runs)
    for (const record::CaseRecord& record : first.records)
      for (const auto& [key, value] : record.identity.params) {
        if (!looked_at.insert(key).second) continue;
        std::set<std::string> all;
        bool is_one_in_each = true;
        for (const results::TabledRun& run : runs) {
          std::set<std::string> in_run;
          for (const record::CaseRecord& other : run.records)
            if (const Value* value = record::find(other.identity.params, key)) in_run.insert(to_text(*value));
          is_one_in_each &= in_run.size() <= 1;
          all.merge(in_run);
        }
        if (is_one_in_each && all.size() > 1) keys.push_back(key);
      }
  return keys;
}

// What the tables of the runs show, the first run's in its order, each other column before the next one of its run that
// is there already, so that a run of something else does not push the first one's aside. Machine, revision and
// settings, by which `assay table` distinguishes runs, stand on the page once for each run.
std::vector<std::string> columns_of(const Tabled& runs) {
  std::vector<std::string> columns;
  for (const results::TabledRun& run : runs) {
    if (run.records.empty()) continue;
    std::vector<std::string> waiting;
    for (const std::string& column : results::default_columns_of_runs({run})) {
      const auto known = std::find(columns.begin(), columns.end(), column);
      if (known == columns.end()) {
        waiting.push_back(column);
      } else {
        columns.insert(known, waiting.begin(), waiting.end());
        waiting.clear();
      }
    }
    columns.insert(columns.end(), waiting.begin(), waiting.end());
  }
  for (const std::string& key : between_runs(runs))
    if (!has(columns, key)) columns.insert(columns.begin(), key);
  // A batch runs on several nodes: which one was slow is asked by filtering for it.
  const auto is_elsewhere = [&runs](const record::CaseRecord& record) {
    return record.host != runs.front().records.front().host;
  };
  const bool has_hosts = std::any_of(runs.begin(), runs.end(), [&](const results::TabledRun& run) {
    return !runs.front().records.empty() && std::any_of(run.records.begin(), run.records.end(), is_elsewhere);
  });
  if (has_hosts && !has(columns, "host")) columns.insert(columns.begin(), "host");
  return columns;
}

Json columns_json(const results::Table& table, const std::vector<record::CaseRecord>& records) {
  Json columns = Json::array();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    bool is_number = false, is_text = false;
    for (const auto& row : table.rows) {
      is_number |= row[c].is_number();
      is_text |= !row[c].empty() && !row[c].is_number();
    }
    Json column{{"name", table.columns[c]}};
    if (is_number && !is_text) column["number"] = true;
    if (is_input(records, table.columns[c])) column["input"] = true;
    columns.push_back(std::move(column));
  }
  return columns;
}

// Texts as a table shows them: what sorts and filters reads them, so that nobody sees two orders of one column.
Json cells_json(const std::vector<record::Cell>& row) {
  Json cells = Json::array();
  for (const record::Cell& cell : row) cells.push_back(record::display_text(cell));
  return cells;
}

std::optional<double> number_of(const Value& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

std::optional<double> input_number(const record::CaseRecord& record, const std::string& key) {
  const record::CaseIdentity& id = record.identity;
  if (key == "ranks") return id.ranks ? std::optional<double>(*id.ranks) : std::nullopt;
  for (const auto* group : {&id.params, &id.axes, &id.settings})
    if (const Value* value = record::find(*group, key)) return number_of(*value);
  if (id.workload.empty() || !record.result.metrics) return std::nullopt;
  const record::CaseMetric* metric = record::find(record.result.metrics, key);
  return metric && !metric->word ? std::optional<double>(metric->value) : std::nullopt;
}

// The numbers over which figures can be drawn: every input that is a number and varies, what was swept first, and the
// size of a model, which a workload counts as `parameters`.
Json inputs_json(const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> keys;
  std::set<std::string> known;
  const auto add = [&](const std::string& key) {
    if (known.insert(key).second) keys.push_back(key);
  };
  for (const record::CaseRecord& record : records)
    for (const auto& entry : record.identity.axes) add(entry.first);
  add("ranks");
  add("parameters");
  for (const record::CaseRecord& record : records)
    for (const auto* group : {&record.identity.params, &record.identity.settings})
      for (const auto& entry : *group) add(entry.first);
  Json inputs = Json::array();
  for (const std::string& key : keys) {
    Json values = Json::array();
    std::set<double> distinct;
    for (const record::CaseRecord& record : records) {
      const auto number = input_number(record, key);
      values.push_back(rounded(number));
      if (number) distinct.insert(*number);
    }
    if (distinct.size() > 1) inputs.push_back({{"name", key}, {"values", std::move(values)}});
  }
  return inputs;
}

Json peaks_json(const SharedNames& names) {
  Json peaks = Json::array();
  for (std::size_t i = 0; i < names.peak_figures.size(); ++i)
    peaks.push_back({{"text", names.peaks.names()[i]},
                     {"stated", static_cast<bool>(names.peak_is_stated[i])},
                     {"gflop_per_s", rounded(names.peak_figures[i].gflop_per_s)},
                     {"gbytes_per_s", rounded(names.peak_figures[i].gbytes_per_s)}});
  return peaks;
}

std::string title_of(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> names;
  for (const ReportedRun& run : runs) {
    const results::RunSource& source = run.table.source;
    const std::string& name = source.experiment.empty() ? source.run : source.experiment;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  constexpr std::size_t most = 3;
  std::string title;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) title += (i ? ", " : "") + names[i];
  return names.size() > most ? title + " and others" : title;
}

}  // namespace

Json page_data(const ReportedRuns& reported, const PageOptions& options) {
  Tabled tabled;
  for (const ReportedRun& run : reported.runs) tabled.push_back(run.table);
  const std::vector<record::CaseRecord> records = results::all_records(tabled);
  const results::Table table = results::table_of_runs(columns_of(tabled), tabled);

  Json runs = Json::array(), cases = Json::array(), comparisons = Json::array();
  SharedNames names;
  const std::size_t samples = samples_of_each_case(records.size(), options.samples);
  for (std::size_t r = 0; r < reported.runs.size(); ++r) {
    runs.push_back(run_json(reported.runs[r]));
    for (const record::CaseRecord& record : reported.runs[r].table.records) {
      Json entry = case_json(record, samples, names);
      entry["run"] = r;
      entry["cells"] = cells_json(table.rows[cases.size()]);
      cases.push_back(std::move(entry));
    }
  }
  for (const ReportedComparison& compared : reported.comparisons)
    comparisons.push_back(comparison_json(compared, reported.test));

  Json data{{"schema", 1},
            {"title", title_of(reported.runs)},
            {"made", options.made},
            {"warnings", reported.warnings},
            {"runs", std::move(runs)},
            {"columns", columns_json(table, records)},
            {"cases", std::move(cases)},
            {"inputs", inputs_json(records)},
            {"phases", names.phases.names()},
            {"memory_kinds", names.memory_kinds.names()},
            {"telemetry", names.telemetry.names()},
            {"peaks", peaks_json(names)},
            {"samples_of_each_case", samples},
            {"comparisons", std::move(comparisons)}};
  if (reported.history) data["history"] = history_json(reported);
  if (!options.plot.empty()) data["plot"] = options.plot;
  if (options.dark) data["dark"] = true;
  if (options.width_px > 0) data["width_px"] = options.width_px;
  return data;
}

std::string fitting_page(const ReportedRuns& reported, PageOptions options, std::size_t most_bytes) {
  constexpr std::size_t fewest_samples = 2'000;
  std::size_t cases = 0;
  for (const ReportedRun& run : reported.runs) cases += run.table.records.size();
  // Many cases have their fewest samples on the first page, and half as many in all change nothing.
  const auto is_least = [&] {
    return samples_of_each_case(cases, options.samples) == samples_of_each_case(cases, fewest_samples);
  };
  for (;; options.samples /= 2) {
    std::string page = page_text(page_data(reported, options));
    if (page.size() <= most_bytes || options.samples <= fewest_samples || is_least()) return page;
  }
}

}  // namespace assay::host::report
