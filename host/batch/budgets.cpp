#include "batch/budgets.hpp"

#include "results/reader.hpp"

#include <algorithm>
#include <utility>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t runs_read = 3;
constexpr double learned_factor = 1.5, learned_extra_s = 10;

using Inputs = std::pair<std::map<std::string, Value>, std::map<std::string, Value>>;

template <class Axes, class Params>
Inputs inputs_of(const Axes& axes, const Params& params) {
  return {{axes.begin(), axes.end()}, {params.begin(), params.end()}};
}

std::vector<fs::path> newest_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (results::stamp_of_run(it->path())) runs.push_back(it->path());
  std::sort(runs.rbegin(), runs.rend());
  runs.resize(std::min(runs.size(), runs_read));
  return runs;
}

// The longest that the case has taken.
std::map<Inputs, double> learned_seconds(const fs::path& folder) {
  std::map<Inputs, double> seconds;
  for (const fs::path& run : newest_runs(folder))
    for (const record::CaseRecord& record : results::read_cases(run / "cases.jsonl").records) {
      if (!record.result.is_ok() || !record.result.wall.case_s) continue;
      double& longest = seconds[inputs_of(record.identity.axes, record.identity.params)];
      longest = std::max(longest, *record.result.wall.case_s);
    }
  return seconds;
}

}  // namespace

std::vector<Budget> budgets_of(const experiment::Experiment& experiment, const Site& site, const fs::path& results) {
  const auto is_given = [](const experiment::Case& c) { return c.cluster.budget.has_value(); };
  std::map<Inputs, double> learned;
  if (!std::all_of(experiment.cases.begin(), experiment.cases.end(), is_given))
    learned = learned_seconds(results / experiment.name);
  std::vector<Budget> budgets;
  for (const experiment::Case& c : experiment.cases) {
    if (c.cluster.budget) {
      budgets.push_back({std::chrono::duration<double>(*c.cluster.budget).count(), Budget::Source::given});
    } else if (const auto found = learned.find(inputs_of(c.axes, c.params)); found != learned.end()) {
      budgets.push_back({found->second * learned_factor + learned_extra_s, Budget::Source::learned});
    } else {
      budgets.push_back({std::chrono::duration<double>(site.limits.case_budget).count(), Budget::Source::site});
    }
  }
  return budgets;
}

}  // namespace assay::host::batch
