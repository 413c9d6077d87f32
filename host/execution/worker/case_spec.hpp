// All that is to be known of one rank of a case, in one specification. It is made where the run is led, and travels as
// JSON, the same text on every road: to the host that starts the rank on another machine, and to the worker itself.
#pragma once
#include "experiment/experiment.hpp"
#include "record/case_record.hpp"
#include "wireup/endpoint.hpp"

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::worker {

// One rank among those of its case, and the service that joins them.
struct RankSpec {
  std::int32_t rank = 0, count = 1;
  std::int32_t local_rank = 0, local_count = 1;  // on its machine
  // Among the ranks that may use the same processors, as their launcher has set it.
  std::int32_t sharer = 0, sharer_count = 1;
  std::string host_name;
  wireup::Endpoint service;  // with one rank there is none
  std::string prefix;        // of the case's keys
};

// A copy of a library, and what it is a copy of: where the run folder is not shared, another machine makes its own.
struct CopiedFile {
  std::string copy, original, sha256;
};

// The first of the cases of a run that compute the same, and the algorithms that it ran.
struct FirstCase {
  record::VerifiedCase which;
  record::Named<std::string> algorithms;
};

// How much of the verification is asked for.
struct VerificationAsked {
  std::string mode = "full";  // of [run] verify
  // The workload's own verification is left out where its steps are accounted for, and, of a case that refers to a
  // first one, the same algorithms have run.
  bool by_account = false;
  std::optional<FirstCase> first = {};
};

struct CaseSpec {
  experiment::Case values;  // parameters (an output file by its absolute path) and settings; the axes stay behind
  std::string plugin_file, device_file;  // the copies that belong to the run
  std::string comm_folder;
  std::vector<std::string> library_folders;  // where what they need is looked for, beside the loader's own places
  std::vector<CopiedFile> copies;            // that the case may open
  std::string host_sha256;                   // of the assay that leads the run
  std::string workload;
  std::vector<std::string> phase_names;  // for the words of whoever watches the worker
  std::string device_kind;               // "cpu", "cuda": resolved, never "auto"
  std::int32_t device_ordinal = 0;
  std::string run_folder;                 // absolute
  std::vector<std::string> output_files;  // that the parameters name: absolute, and no other rank's or case's
  RankSpec ranks;
  VerificationAsked verification;

  bool is_alone() const { return ranks.count == 1; }
  bool shares_processors() const { return ranks.sharer_count > 1 && values.run.bind == "none"; }
  const measure::MeasurePlan& plan() const { return values.measure; }
  // "case-0001", "case-0001.repeat2", "case-0001.rank2": the files that belong to this rank are named so.
  std::string file_stem() const;
  std::filesystem::path file_of_run(const std::string& name) const;
  std::filesystem::path log_file() const;
};

nlohmann::json to_json(const CaseSpec& spec);
CaseSpec case_spec_from_json(const nlohmann::json& json);

// A worker may be asked to open a device instead of running a case: the text that stands in the place of a CaseSpec's,
// and the device that a text asks for; nothing when it is a CaseSpec's.
nlohmann::json probe_to_json(const std::string& wanted_device);
std::optional<std::string> probe_from_json(const nlohmann::json& json);

}  // namespace assay::host::worker
