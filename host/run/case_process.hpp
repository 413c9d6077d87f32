// One case, run in a worker process or in this one, as a record.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "launch/signals.hpp"
#include "plugin/search.hpp"
#include "results/record.hpp"

namespace assay::host {

// The workload that a run measures, and where its file stands.
struct RunTarget {
  FoundWorkload found;
  WorkloadSchema schema;
  std::string file_hash;
};

using StageProgress =
    std::function<void(const char* stage, std::int64_t step, std::int64_t total_steps, const std::string& phase)>;

struct CaseContext {
  const RunTarget& target;
  const InterruptHandler& interrupts;
  std::filesystem::path run_folder;
  StageProgress on_progress;
  bool in_process = false;
};

// The worker's part of the record; with `interrupted` true the case did not end by itself and has no record.
struct CaseOutcome {
  Record record;
  bool interrupted = false;
};

CaseOutcome run_case_on(const Case& c, const std::string& device_kind, const CaseContext& context);

// {"status": ...} as probe_device() gives it, asked in a process of its own so that no vendor library is opened here.
Record probe_in_process_of_its_own(const std::string& wanted, const std::filesystem::path& log_file,
                                   const InterruptHandler& interrupts);

}  // namespace assay::host
