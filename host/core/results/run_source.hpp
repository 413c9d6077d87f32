// The run that the rows of a table belong to, and the columns that it fills (record::run_columns).
#pragma once
#include "record/cell.hpp"
#include "record/environment.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::results {

struct RunSource {
  std::string run;                                          // the name of its folder, or of the file that holds it
  std::string experiment;                                   // "" if unknown
  std::optional<record::Environment> environment;           // the run's; nothing where it has none
  std::map<std::string, record::Environment> environments;  // by the ids that records name

  // What the record was made in; null if unknown.
  const record::Environment* environment_of(const record::CaseRecord& record) const;
  // The cell of a column of the run, and `host`, which records of earlier versions leave to their environment. Nothing
  // for other columns.
  std::optional<record::Cell> cell_of(const record::CaseRecord& record, std::string_view column) const;
};

// The source of a run folder. Files that are missing or that cannot be understood leave their part empty; `warnings`
// names the latter.
RunSource run_source(const std::filesystem::path& run_folder, std::vector<std::string>& warnings);

}  // namespace assay::host::results
