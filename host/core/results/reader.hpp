// Reading runs back: their records, and which run is the newest.
#pragma once
#include "results/environments.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::results {

struct CasesFile {
  std::vector<record::CaseRecord> records;  // in the file's order; a case that was run again stands twice
  // The host was killed while it wrote the last line: it holds no record and does not count.
  bool torn = false;
  std::uint64_t whole_bytes = 0;      // the length of the file without the torn line
  bool newline_missing = false;       // the last record is whole but for its line end
  std::vector<std::string> warnings;  // for the user, one line each
};

// No file: no records. Lines that are no record are left out and named in the warnings. Throws StorageError when the
// file cannot be read.
CasesFile read_cases(const std::filesystem::path& cases_jsonl);
// The same of the last line alone: whether it is torn, and where it begins.
CasesFile read_last_case(const std::filesystem::path& cases_jsonl);

// What a summary (bench_*.json) says of its run.
struct SummaryFile {
  std::vector<record::CaseRecord> records;
  std::optional<record::Environment> environment;
  Environments environments;  // by the ids that records name
  std::string experiment;     // its name; "" where the file does not say
};
// Nothing when the file is no JSON object with records. Throws StorageError when it cannot be read.
std::optional<SummaryFile> read_summary_file(const std::filesystem::path& file);

// The runs of the experiment below `dir`/`name` that hold an experiment.toml and a record, the newest first. Of runs of
// one second, the one that `latest` points at comes first. `suffix`: that of a part of a run ("-part-2-of-8"); others
// are left out then, as are parts without one.
std::vector<std::filesystem::path> runs_newest_first(const std::filesystem::path& dir, const std::string& name,
                                                     const std::string& suffix = "");

// What follows the id in a run folder's name: "-part-2-of-8" of "20261120T120000Z-9f2c-part-2-of-8"; "" of a whole run.
std::string suffix_of_run(const std::filesystem::path& run_folder);

// "20261120T120000Z" of ".../20261120T120000Z-9f2c"; nothing when the folder's name is of another form.
std::optional<std::string> stamp_of_run(const std::filesystem::path& run_folder);

}  // namespace assay::host::results
