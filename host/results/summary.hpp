// The views of a run: tables and the summary, made anew from cases.jsonl whenever wanted.
#pragma once
#include "record/environment.hpp"
#include "results/table.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

// "AMD EPYC 9B14 (rev 1)" -> "AMD_EPYC_9B14_rev_1"
std::string file_name_part(const std::string& model);
// "bench_NVIDIA_H200_4gpu_20261120T120000Z.json". The model and number of the GPUs that the records name; on the CPU
// its model from the environment, and 0.
std::string summary_file_name(const std::vector<record::CaseRecord>& records, const record::Environment& environment,
                              const std::string& stamp);

// The summary's text: {"schema", "metadata", "config", "cases", "summary"}, one line per case.
std::string summary_json(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records,
                         const record::Environment& environment, const std::string& stamp);

struct Views {
  std::vector<std::filesystem::path> files;  // written
  std::vector<record::CaseRecord> records;   // the newest of each case, in the order of the cases
  Table table;
  std::vector<std::string> warnings;  // lines of cases.jsonl that do not count
};

// Reads the run's records, and writes table.csv, table.md and the summary as `experiment.output.formats` asks. Throws
// StorageError.
Views write_views(const std::filesystem::path& run_folder, const experiment::Experiment& experiment);

}  // namespace assay::host::results
