#include "report/runs.hpp"

#include "common/files.hpp"
#include "compare/overview.hpp"
#include "compare/sides.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

// A run is called by its folder, also where `latest` was given, and its experiment by the folder around that; of a
// summary, by its file and by what that says.
void name_run(results::RunSource& source, const compare::ComparedRun& run) {
  std::error_code unresolved;
  fs::path place = fs::weakly_canonical(run.path, unresolved);
  if (unresolved) place = fs::absolute(run.path).lexically_normal();
  source.run = place.stem().string();
  source.experiment = run.experiment;
  if (place.extension() == ".json") return;
  if (place.filename().empty() || place.filename() == "cases.jsonl") place = place.parent_path();
  source.run = place.filename().string();
  source.experiment = (results::stamp_of_run(place) ? place.parent_path() : place).filename().string();
}

ReportedRun reported(const compare::ComparedRun& run, std::string label) {
  ReportedRun out{std::move(label), run.path, {}};
  name_run(out.table.source, run);
  out.table.source.environment = run.environment;
  out.table.source.environments = run.environments;
  out.table.records = run.records;
  return out;
}

bool has_memory(const std::vector<compare::Side>& sides) {
  for (const compare::Side& side : sides)
    for (const compare::ComparedRun& run : side.runs)
      for (const record::CaseRecord& record : run.records)
        if (record.result.memory && record.result.memory->peak_total_mib.value_or(0) > 0) return true;
  return false;
}

ReportedComparison compared(std::vector<compare::Side> sides, const compare::ComparisonOptions& asked) {
  compare::ComparisonOptions options = asked;
  if (has_memory(sides)) options.metrics.emplace_back("memory");
  try {
    return {compare::compare_sides(std::move(sides), options), ""};
  } catch (const compare::NoMetricError& e) {
    return {std::nullopt, e.what()};
  }
}

// The cases of one run, or of several runs of one thing, beside each other.
ReportedComparison split_and_compared(const std::vector<compare::Side>& sides, const compare::SplitRules& rules,
                                      compare::ComparisonOptions options) {
  if (sides.size() != 1)
    throw compare::SplitError(fmt::format(
        "--by splits one side, and there are {}; expected one run, or several of the same thing separated by commas",
        sides.size()));
  compare::SplitSide split = compare::split_side(sides.front(), rules);
  options.rules.across.merge(split.across);
  ReportedComparison out = compared(std::move(split.sides), options);
  if (out.comparison) out.comparison->side_notes = std::move(split.notes);
  return out;
}

// Of a folder with runs of several experiments: each is a separate side, and those of a group are compared. A file
// that is no run is reported; the others are shown all the same.
void add_overview(const compare::Overview& overview, const compare::ComparisonOptions& options, ReportedRuns& out) {
  out.warnings = overview.warnings;
  out.warnings.insert(out.warnings.end(), overview.skipped.begin(), overview.skipped.end());
  std::map<std::size_t, std::vector<compare::Side>> groups;
  std::vector<std::string> reported_before;
  for (std::size_t i = 0; i < overview.runs.size(); ++i) {
    const std::string path = (fs::path(overview.folder) / overview.runs[i].path).string();
    compare::Side side{compare::side_label(i), path, {}};
    side.runs.push_back(compare::read_run(path, reported_before));
    out.runs.push_back(reported(side.runs.front(), side.label));
    for (std::size_t group = 0; group < overview.groups.size(); ++group)
      if (std::find(overview.groups[group].begin(), overview.groups[group].end(), i) != overview.groups[group].end())
        groups[group].push_back(std::move(side));
  }
  for (auto& [group, sides] : groups) out.comparisons.push_back(compared(std::move(sides), options));
}

void check_has_records(const ReportedRuns& read, const std::vector<std::string>& given) {
  const bool is_any = std::any_of(read.runs.begin(), read.runs.end(),
                                  [](const ReportedRun& run) { return !run.table.records.empty(); });
  if (is_any) return;
  // A file that cannot be read, or a batch that is not collected, has another remedy.
  std::vector<std::string> damages = read.warnings;
  for (const ReportedRun& run : read.runs)
    if (!results::is_batch(run.path)) std::erase(damages, results::text_of_no_records(run.path));
  throw results::NoRunError(
      fmt::format("{}: no case has finished there, so there is nothing to report; {}", fmt::join(given, ", "),
                  damages.empty() ? "run the experiment, or continue it with 'assay run EXPERIMENT.toml --resume'"
                                  : fmt::format("{}", fmt::join(damages, "; "))));
}

}  // namespace

ReportedRuns read_runs(const std::vector<std::string>& given, const ComparisonRules& rules) {
  ReportedRuns out;
  compare::ComparisonOptions options;
  options.test = out.test;
  options.rules = rules.match;
  const bool splits = !rules.split.keys.empty();
  if (given.size() == 1 && !splits)
    if (const auto overview = compare::overview_of(given.front())) {
      add_overview(*overview, options, out);
      check_has_records(out, given);
      return out;
    }
  compare::Sides read = compare::read_sides(given, compare::FolderOfRuns::sides);
  out.warnings = std::move(read.warnings);
  for (const compare::Side& side : read.sides)
    for (std::size_t i = 0; i < side.runs.size(); ++i)
      out.runs.push_back(
          reported(side.runs[i], side.runs.size() == 1 ? side.label : fmt::format("{}{}", side.label, i + 1)));
  check_has_records(out, given);
  if (splits)
    out.comparisons.push_back(split_and_compared(read.sides, rules.split, options));
  else if (read.sides.size() > 1)
    out.comparisons.push_back(compared(std::move(read.sides), options));
  return out;
}

}  // namespace assay::host::report
