// The views of a run: tables and the summary, made anew from cases.jsonl whenever wanted.
#pragma once
#include "record/environment.hpp"
#include "results/reader.hpp"
#include "results/summary_parts.hpp"
#include "results/table.hpp"
#include "results/view_file.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

// "AMD EPYC 9B14 (rev 1)" -> "AMD_EPYC_9B14_rev_1"
std::string file_name_part(const std::string& model);
// "bench_NVIDIA_H200_4gpu_20261120T120000Z.json". The model and number of the GPUs that the records name; on the CPU
// its model from the environment, 0, and the number of ranks where it is not one: "bench_AMD_EPYC_0gpu_2ranks_...".
// A part whose cases reached no device has the model of the others: `of_run` are the records of the whole run.
std::string summary_file_name(const SummaryPart& part, const std::vector<record::CaseRecord>& of_run,
                              const record::Environment& environment, const std::string& stamp);

// The summary's text: {"schema", "metadata", "config", "cases", "summary"}, one line per case. `environment` is the
// run's newest, `environments` those that its records may name.
std::string summary_json(const experiment::Experiment& experiment, const SummaryPart& part,
                         const std::vector<record::CaseRecord>& of_run, const record::Environment& environment,
                         const std::string& stamp, const Environments& environments = {});

struct Views {
  std::vector<std::filesystem::path> files;  // written
  std::filesystem::path named_file;          // that of them which the user named; empty: none
  std::string named_file_error;              // why it could not be written
  std::vector<record::CaseRecord> records;   // the newest of each case, in the order of the cases
  Table table;
  Table full_table;                   // with all that rows of several runs are put together by: table.csv
  std::vector<std::string> warnings;  // lines of cases.jsonl that do not count
};

// Reads the run's records, and writes table.csv, table.md and the summaries (one for each number of ranks) as
// `experiment.output.formats` asks. `named`: a view of the whole run that goes to a file of the user's. Throws
// StorageError.
Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment,
                  const std::optional<ViewFile>& named = std::nullopt);
// The same for records that were read already.
Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment, CasesFile cases,
                  const std::optional<ViewFile>& named);

}  // namespace assay::host::results
