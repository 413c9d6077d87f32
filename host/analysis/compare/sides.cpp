#include "compare/sides.hpp"

#include "common/files.hpp"
#include "common/text_format.hpp"
#include "record/environment_file.hpp"
#include "results/case_order.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;

using results::is_folder;
using results::is_there;

ComparedRun read_summary(const fs::path& file) {
  std::optional<results::SummaryFile> summary = results::read_summary_file(file);
  if (!summary)
    throw NoRunError(
        fmt::format("{} has no records: expected the summary that a run writes, a JSON object with \"cases\"; give the "
                    "run's folder instead",
                    file.string()));
  return {file.string(), std::move(summary->records), std::move(summary->environment), std::move(summary->experiment),
          std::move(summary->environments)};
}

// A record whose environment is gone is compared as if it were of the run's newest one, which may be another machine.
void warn_of_missing_environments(const ComparedRun& run, std::vector<std::string>& warnings) {
  std::map<std::string, std::size_t> missing;
  for (const record::CaseRecord& record : run.records)
    if (!record.environment.empty() && !run.environments.contains(record.environment)) ++missing[record.environment];
  for (const auto& [id, count] : missing)
    warnings.push_back(
        fmt::format("{}: {} record(s) were made in the environment {}, but environments/{}.json is missing; "
                    "environment.json is used instead. Restore the file",
                    one_line(run.path), count, one_line(id), one_line(id)));
}

ComparedRun read_lines(const fs::path& name, const fs::path& cases_jsonl, std::vector<std::string>& warnings) {
  results::CasesFile cases = results::read_cases(cases_jsonl);
  warnings.insert(warnings.end(), cases.warnings.begin(), cases.warnings.end());
  ComparedRun run{name.string(), std::move(cases.records), {}};
  const fs::path folder = fs::absolute(cases_jsonl).lexically_normal().parent_path();
  run.experiment = (results::stamp_of_run(folder) ? folder.parent_path() : folder).filename().string();
  if (const fs::path environment = cases_jsonl.parent_path() / "environment.json"; is_there(environment))
    run.environment = results::read_environment(environment, warnings);
  run.environments = results::read_environments(cases_jsonl.parent_path(), warnings);
  warn_of_missing_environments(run, warnings);
  return run;
}

std::vector<ComparedRun> read_runs(const std::string& given, std::vector<std::string>& warnings) {
  std::vector<ComparedRun> runs;
  for (const fs::path& path : results::runs_of(given)) {
    if (is_folder(path))
      runs.push_back(read_lines(path, path / "cases.jsonl", warnings));
    else
      runs.push_back(path.extension() == ".jsonl" ? read_lines(path, path, warnings) : read_summary(path));
  }
  for (ComparedRun& run : runs) {
    run.records = results::last_of_each_case(std::move(run.records));
    if (run.records.empty()) warnings.push_back(results::text_of_no_records(run.path));
  }
  return runs;
}

// A path may have a comma in it.
std::vector<std::string> split_at_commas(const std::string& given) {
  std::vector<std::string> parts;
  if (is_there(given)) return {given};
  for (std::size_t begin = 0; begin <= given.size();) {
    const std::size_t end = std::min(given.find(',', begin), given.size());
    if (end > begin) parts.push_back(given.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts.empty() ? std::vector<std::string>{given} : parts;
}

}  // namespace

const record::Environment* ComparedRun::environment_of(const record::CaseRecord& record) const {
  const auto named = environments.find(record.environment.empty() ? record::unnamed_environment : record.environment);
  if (named != environments.end()) return &named->second;
  return environment ? &*environment : nullptr;
}

std::string side_label(std::size_t index) {
  std::string label;
  for (std::size_t rest = index + 1; rest > 0; rest = (rest - 1) / 26)
    label.insert(label.begin(), static_cast<char>('A' + (rest - 1) % 26));
  return label;
}

ComparedRun read_run(const fs::path& path, std::vector<std::string>& warnings) {
  return std::move(read_runs(path.string(), warnings).front());
}

namespace {

// The folder of a run, or its file, however it is named.
fs::path place_of(const ComparedRun& run) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(run.path, error);
  if (place.filename().empty()) place = place.parent_path();
  return place.filename() == "cases.jsonl" ? place.parent_path() : place;
}

// A run that is named twice would count as two that agree.
void check_each_once(const std::vector<ComparedRun>& runs) {
  std::map<fs::path, std::string> known;
  for (const ComparedRun& run : runs) {
    const auto [first, is_new] = known.emplace(place_of(run), run.path);
    if (!is_new)
      throw NoRunError(fmt::format("{} and {} are one run, and are named for one side; name each run once",
                                   first->second, run.path));
  }
}

// A run beside itself has the same figures, whatever they are worth.
void check_sides_differ(const std::vector<Side>& sides) {
  std::map<fs::path, std::pair<const Side*, std::string>> known;
  for (const Side& side : sides)
    for (const ComparedRun& run : side.runs) {
      const auto [first, is_new] = known.emplace(place_of(run), std::pair(&side, run.path));
      const auto& [other, path] = first->second;
      if (is_new || other == &side) continue;
      throw NoRunError(fmt::format("{} and {} are one run: {}; a run is not compared with itself. Name another run",
                                   other->label, side.label,
                                   path == run.path ? path : fmt::format("{} and {}", path, run.path)));
    }
}

// The keys of all its measurements, in order.
std::vector<std::string> measurements_of(const ComparedRun& run) {
  std::vector<std::string> keys;
  for (const record::CaseRecord& record : run.records)
    if (std::string key = record::measurement_key(record); !key.empty()) keys.push_back(std::move(key));
  std::sort(keys.begin(), keys.end());
  return keys;
}

// A copy of a run would agree with it, whatever its figures are worth. Of two runs that have some rows in common each
// has measured something.
void check_no_copies(const std::vector<Side>& sides) {
  std::map<std::vector<std::string>, std::pair<const Side*, const ComparedRun*>> known;
  for (const Side& side : sides)
    for (const ComparedRun& run : side.runs) {
      std::vector<std::string> keys = measurements_of(run);
      if (keys.empty()) continue;
      const auto [first, is_new] = known.emplace(std::move(keys), std::pair(&side, &run));
      if (is_new) continue;
      const auto& [other_side, other] = first->second;
      const auto record = std::find_if(run.records.begin(), run.records.end(),
                                       [](const auto& each) { return !record::measurement_key(each).empty(); });
      throw NoRunError(
          fmt::format("{} has the same measurements as {} (case {}, started {}): one is a copy of the other. {}; "
                      "name another run",
                      run.path, other->path, record->identity.index + 1, record->started,
                      other_side == &side ? "Both are named for one side" : "A run is not compared with itself"));
    }
}

// A file that was imported more than once: whoever asked for that said that it is another measurement.
void warn_of_imports_of_one_file(const std::vector<Side>& sides, std::vector<std::string>& warnings) {
  std::map<std::string, std::string> known;
  for (const Side& side : sides)
    for (const ComparedRun& run : side.runs) {
      const std::string sha256 = run.environment ? run.environment->fact_or("imported.sha256", "") : "";
      if (sha256.empty()) continue;
      const auto [first, is_new] = known.emplace(sha256, run.path);
      if (!is_new)
        warnings.push_back(
            fmt::format("{} and {} were imported from one file, to the byte: they agree, whatever it is worth",
                        first->second, run.path));
    }
}

}  // namespace

Sides read_sides(const std::vector<std::string>& arguments, FolderOfRuns folders) {
  Sides result;
  const auto add = [&result](std::string name, std::vector<ComparedRun> runs) {
    result.sides.push_back({side_label(result.sides.size()), std::move(name), std::move(runs)});
  };
  for (const std::string& argument : results::without_links_to_others(arguments, result.warnings)) {
    const std::vector<std::string> parts = split_at_commas(argument);
    std::vector<ComparedRun> runs;
    for (const std::string& part : parts)
      for (ComparedRun& run : read_runs(part, result.warnings)) runs.push_back(std::move(run));
    if (parts.size() > 1 || folders == FolderOfRuns::one_side) {
      check_each_once(runs);
      add(argument, std::move(runs));
      continue;
    }
    for (ComparedRun& run : runs) {
      std::string name = run.path;
      std::vector<ComparedRun> one;
      one.push_back(std::move(run));
      add(std::move(name), std::move(one));
    }
  }
  check_sides_differ(result.sides);
  check_no_copies(result.sides);
  warn_of_imports_of_one_file(result.sides, result.warnings);
  return result;
}

}  // namespace assay::host::compare
