#include "compare/overview.hpp"

#include "common/files.hpp"
#include "compare/inputs.hpp"
#include "record/columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;

std::optional<double> mean_over_ok(const ComparedRun& run, const char* column) {
  double sum = 0;
  std::size_t count = 0;
  for (const record::CaseRecord& record : run.records)
    if (const auto figure = record::cell_of(record, column).number(); figure && record.result.is_ok()) {
      sum += *figure;
      ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

RunRow row_of(const ComparedRun& run, const fs::path& path, const fs::path& folder) {
  RunRow row;
  row.path = path.lexically_relative(folder).string();
  row.experiment = run.experiment;
  std::set<std::string> devices, workloads;
  for (const record::CaseRecord& record : run.records) {
    if (row.started.empty() || (!record.started.empty() && record.started < row.started)) row.started = record.started;
    if (record.result.device && !record.result.device->name.empty()) devices.insert(record.result.device->name);
    workloads.insert(record.identity.workload);
    row.ok += record.result.is_ok() ? 1 : 0;
  }
  row.cases = run.records.size();
  row.device = fmt::format("{}", fmt::join(devices, " | "));
  row.workload = fmt::format("{}", fmt::join(workloads, " | "));
  row.step_mean_ms = mean_over_ok(run, "step.mean_ms");
  row.items_per_s = mean_over_ok(run, "items_per_s");
  return row;
}

// Which runs belong together: each starts alone, and is joined with those that share something.
class Groups {
 public:
  std::size_t add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  // The run has this, as may others.
  void share(std::size_t run, const std::string& what) {
    const auto [first, is_new] = owner_.emplace(what, run);
    if (!is_new) parent_[root(run)] = root(first->second);
  }
  std::size_t root(std::size_t run) {
    while (parent_[run] != run) run = parent_[run] = parent_[parent_[run]];
    return run;
  }

 private:
  std::vector<std::size_t> parent_;
  std::map<std::string, std::size_t> owner_;
};

class Gathering {
 public:
  explicit Gathering(const std::string& folder) { overview_.folder = folder; }

  void read(const fs::path& path) {
    ComparedRun run;
    try {
      run = read_run(path, overview_.warnings);
    } catch (const NoRunError& e) {
      overview_.skipped.emplace_back(e.what());
      return;
    } catch (const StorageError& e) {
      overview_.skipped.emplace_back(e.what());
      return;
    }
    overview_.runs.push_back(row_of(run, path, overview_.folder));
    const std::size_t place = groups_.add();
    // A run in which nothing came out has nothing to compare.
    for (const record::CaseRecord& record : run.records)
      if (record.result.is_ok()) groups_.share(place, fingerprint(CaseInputs(record), {}));
    if (overview_.runs.back().ok > 0)
      groups_.share(place, fmt::format("experiment {} {}", run.experiment, overview_.runs.back().workload));
  }

  Overview finish() {
    std::map<std::size_t, std::vector<std::size_t>> by_root;
    for (std::size_t run = 0; run < overview_.runs.size(); ++run) by_root[groups_.root(run)].push_back(run);
    std::vector<std::vector<std::size_t>> groups;
    std::size_t alone = 0;
    for (auto& [root, runs] : by_root) {
      if (runs.size() > 1)
        groups.push_back(std::move(runs));
      else
        ++alone;
    }
    std::sort(groups.begin(), groups.end());
    for (auto& group : groups) add_group(std::move(group));
    if (alone > 0)
      overview_.skipped.push_back(
          fmt::format("{} run{} no case with another", alone, alone == 1 ? " shares" : "s share"));
    return std::move(overview_);
  }

 private:
  void add_group(std::vector<std::size_t> runs) {
    std::stable_sort(runs.begin(), runs.end(), [this](std::size_t a, std::size_t b) {
      return overview_.runs[a].started < overview_.runs[b].started;
    });
    const std::size_t number = overview_.groups.size(), all = runs.size();
    if (all > most_compared_runs) {
      runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(most_compared_runs));
      overview_.skipped.push_back(fmt::format("comparison {} has the {} newest of {} runs; name others to compare them",
                                              number + 1, most_compared_runs, all));
    }
    for (const std::size_t run : runs) overview_.runs[run].group = number;
    overview_.groups.push_back(std::move(runs));
  }

  Overview overview_;
  Groups groups_;
};

bool lie_directly_in(const fs::path& folder, const std::vector<fs::path>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&folder](const fs::path& run) {
    const fs::path below = run.lexically_relative(folder);
    return std::distance(below.begin(), below.end()) == 1;
  });
}

}  // namespace

std::optional<Overview> overview_of(const std::string& folder) {
  const std::vector<fs::path> paths = runs_below(folder);
  if (paths.size() < 2) return std::nullopt;
  Gathering gathering(folder);
  for (const fs::path& path : paths) gathering.read(path);
  Overview overview = gathering.finish();
  const bool all_in_one = overview.groups.size() == 1 && overview.groups.front().size() == paths.size();
  if (all_in_one && lie_directly_in(folder, paths)) return std::nullopt;
  return overview;
}

Comparison compare_group(const Overview& overview, std::size_t group, const ComparisonOptions& options) {
  std::vector<Side> sides;
  std::vector<std::string> told_before;
  for (const std::size_t place : overview.groups[group]) {
    const std::string path = (fs::path(overview.folder) / overview.runs[place].path).string();
    Side side{side_label(sides.size()), path, {}};
    side.runs.push_back(read_run(path, told_before));
    sides.push_back(std::move(side));
  }
  return compare_sides(std::move(sides), options);
}

std::string group_title(const Overview& overview, std::size_t group) {
  std::vector<std::string> experiments;
  for (const std::size_t run : overview.groups[group])
    if (const std::string& name = overview.runs[run].experiment;
        std::find(experiments.begin(), experiments.end(), name) == experiments.end())
      experiments.push_back(name);
  return fmt::format("Comparison {}: {}, {} runs", group + 1, fmt::join(experiments, " and "),
                     overview.groups[group].size());
}

}  // namespace assay::host::compare
