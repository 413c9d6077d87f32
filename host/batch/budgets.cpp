#include "batch/budgets.hpp"

#include "experiment/settings.hpp"
#include "results/reader.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t runs_read = 3;
constexpr double learned_factor = 1.5, learned_extra_s = 10;

using Axes = std::map<std::string, Value>;

// They decide how long a case takes as much as those that takes_as_long() looks at.
constexpr std::array<const char*, 2> ranks_and_device{"run.ranks", "run.device"};

// A parameter that the device decides stands in the experiment as "auto", or as 0.
bool is_open(const Value& value) { return value == Value(std::string("auto")) || value == Value(std::int64_t{0}); }

bool is_record_of(const record::CaseRecord& record, const experiment::Case& c) {
  for (const auto& [name, value] : record.identity.params) {
    const auto found = c.params.find(name);
    if (found == c.params.end() || (found->second != value && !is_open(found->second))) return false;
  }
  for (const char* name : ranks_and_device) {
    const Value* of_record = record::find(record.identity.settings, name);
    const auto of_case = c.find(name);
    if (of_record && of_case && *of_record != *of_case) return false;
  }
  return experiment::takes_as_long(record.identity.settings, c);
}

std::vector<fs::path> newest_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (results::stamp_of_run(it->path()) && results::suffix_of_run(it->path()).empty()) runs.push_back(it->path());
  std::sort(runs.rbegin(), runs.rend());
  runs.resize(std::min(runs.size(), runs_read));
  return runs;
}

// The records that are ok, by the axes of their cases.
std::multimap<Axes, record::CaseRecord> earlier_records(const fs::path& folder) {
  std::multimap<Axes, record::CaseRecord> records;
  for (const fs::path& run : newest_runs(folder))
    for (record::CaseRecord& record : results::read_cases(run / "cases.jsonl").records)
      if (record.result.is_ok() && record.result.wall.case_s) {
        Axes axes(record.identity.axes.begin(), record.identity.axes.end());
        records.emplace(std::move(axes), std::move(record));
      }
  return records;
}

// The longest that the case has taken.
std::optional<double> learned_seconds(const std::multimap<Axes, record::CaseRecord>& records,
                                      const experiment::Case& c) {
  std::optional<double> longest;
  const auto [begin, end] = records.equal_range(Axes(c.axes.begin(), c.axes.end()));
  for (auto it = begin; it != end; ++it)
    if (is_record_of(it->second, c)) longest = std::max(longest.value_or(0), *it->second.result.wall.case_s);
  return longest;
}

}  // namespace

std::vector<Budget> budgets_of(const experiment::Experiment& experiment, const Site& site, const fs::path& results) {
  const auto is_given = [](const experiment::Case& c) { return c.cluster.budget.has_value(); };
  std::multimap<Axes, record::CaseRecord> records;
  if (!std::all_of(experiment.cases.begin(), experiment.cases.end(), is_given))
    records = earlier_records(results / experiment.name);
  std::vector<Budget> budgets;
  for (const experiment::Case& c : experiment.cases) {
    if (c.cluster.budget) {
      budgets.push_back({std::chrono::duration<double>(*c.cluster.budget).count(), Budget::Source::given});
    } else if (const auto seconds = learned_seconds(records, c)) {
      budgets.push_back({*seconds * learned_factor + learned_extra_s, Budget::Source::learned});
    } else {
      budgets.push_back({std::chrono::duration<double>(site.limits.case_budget).count(), Budget::Source::site});
    }
  }
  return budgets;
}

}  // namespace assay::host::batch
