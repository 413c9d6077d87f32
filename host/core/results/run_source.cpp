#include "results/run_source.hpp"

#include "common/files.hpp"
#include "record/columns.hpp"
#include "results/reader.hpp"

#include <algorithm>
#include <system_error>

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

// Under this id stands the environment of the records that name none, where others do.
constexpr const char* kUnnamed = "unnamed";

record::Cell fact_cell(const record::Environment* environment, std::string_view fact) {
  std::string text = environment ? environment->fact_or(fact, "") : "";
  return text.empty() ? record::Cell{} : record::text_cell(std::move(text));
}

record::Cell name_cell(const std::string& name) { return name.empty() ? record::Cell{} : record::text_cell(name); }

}  // namespace

const record::Environment* RunSource::environment_of(const record::CaseRecord& record) const {
  const auto named = environments.find(record.environment.empty() ? kUnnamed : record.environment);
  if (named != environments.end()) return &named->second;
  // That of the run may be another machine's than the one that the record names.
  return record.environment.empty() && environment ? &*environment : nullptr;
}

std::optional<record::Cell> RunSource::cell_of(const record::CaseRecord& record, std::string_view column) const {
  if (column == "run") return name_cell(run);
  if (column == "experiment") return name_cell(experiment);
  if (std::find(record::run_columns.begin(), record::run_columns.end(), column) != record::run_columns.end())
    return fact_cell(environment_of(record), column);
  if (column == "host" && record::cell_of(record, column).empty())
    return fact_cell(environment_of(record), "os.hostname");
  return std::nullopt;
}

RunSource run_source(const fs::path& run_folder, std::vector<std::string>& warnings) {
  std::error_code unresolved;  // `latest` is a link
  fs::path folder = fs::weakly_canonical(run_folder, unresolved);
  if (unresolved) folder = fs::absolute(run_folder).lexically_normal();
  RunSource source;
  source.run = folder.filename().string();
  source.experiment = (stamp_of_run(folder) ? folder.parent_path() : folder).filename().string();
  std::error_code ignored;
  if (const fs::path newest = folder / "environment.json"; fs::is_regular_file(newest, ignored))
    source.environment = read_environment(newest, warnings);
  source.environments = read_environments(folder, warnings);
  return source;
}

}  // namespace assay::host::results
