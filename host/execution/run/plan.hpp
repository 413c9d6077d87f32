// The plan of a run: what becomes of each case, decided once and before any of them starts. Whoever carries it out
// decides nothing anew. Making it starts no process, but for what `ask_device` does.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiment/experiment.hpp"
#include "run/found_device.hpp"
#include "wireup/rank_source.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

// The settings that count for the run as a whole. Where a sweep changes one of them, its first case speaks.
struct RunWideSettings {
  std::vector<std::string> allow;
  std::chrono::milliseconds wireup_timeout{};
  bool isolate = true;
  std::vector<std::string> hosts;
};
RunWideSettings run_wide_settings(const experiment::Experiment& experiment);

// The reason why a case is recorded without having been started.
struct Refusal {
  record::Status status = record::Status::unsupported;
  std::string reason;
};

struct CasePlan {
  experiment::Case values;  // the experiment's, with what its choices stand for on the device
  const worker::FoundDevice& device;
  std::int32_t ranks = 1;
  record::Named<std::string> files;  // SHA-256 of what makes its numbers, by role: record/case_record.hpp
  std::vector<std::string> inputs;   // the files that its parameters name
  std::string hash;
  std::string computation;  // the hash of it without how often and how its steps are measured: what is verified
  worker::VerificationAsked verification = {};  // said when the case is about to run
  bool in_process = false;                      // no worker: the case runs in this process
  bool is_finished = false;                     // by the run that is resumed: nothing is left to do
  std::optional<Refusal> refusal;
};

// Its cases refer to its devices: it moves, and is not copied.
struct RunPlan {
  RunPlan() = default;
  RunPlan(RunPlan&&) = default;
  RunPlan& operator=(RunPlan&&) = default;
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;

  RunWideSettings settings;
  std::map<std::string, worker::FoundDevice> devices;  // by [run] device
  std::vector<CasePlan> cases;                         // in the experiment's order

  std::vector<const CasePlan*> to_run() const;
};

// Distinguishes the cases of a run: cases that differ in a setting that no hash holds have one hash, and other axes. A
// case that ran once has had the first of its repeats.
std::string finished_key(const std::string& hash, const record::Named<Value>& axes,
                         const std::optional<std::int64_t>& repeat = std::nullopt);

// A plan depends on these beside the experiment.
struct PlanBasis {
  const plugin::WorkloadSchema& schema;
  std::optional<wireup::LaunchedRank> launched;  // the launcher that has started this process with others
  bool in_process = false;                       // --in-process
  std::set<std::string> finished;                // finished_key() of the cases that the resumed run has finished
  std::map<std::int64_t, std::vector<std::string>> cases_of_index;  // of the resumed run: finished_key("", axes)
  std::function<worker::FoundDevice(const std::string& wanted)> ask_device;  // called once for each [run] device
  // The hashes of the libraries behind a case on such a device, by role, and that of a file which a parameter names.
  std::function<record::Named<std::string>(const std::string& device_kind, std::int32_t ranks)> files_of;
  std::function<std::string(const std::string& path)> hash_of_input;
  // Why Nsight Compute cannot be run here, asked where a case wants it; "": it can. Empty: nobody asks.
  std::function<std::string()> problem_of_ncu = {};
  bool wants_hashes = true;  // false where no case is run or resumed: a plan of many cases
};

// Throws std::system_error when an input file cannot be read, and what `ask_device` throws.
RunPlan make_plan(const experiment::Experiment& experiment, const PlanBasis& basis);

// The experiment with its cases as they are planned: what their records say of them, and are known again by.
experiment::Experiment as_planned(experiment::Experiment experiment, const RunPlan& plan);

}  // namespace assay::host::run
