// The plan of an experiment, as `assay plan` and the dry runs of `run` and `submit` show it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "console/run_command.hpp"
#include "plan/plan.hpp"
#include "results/find_runs.hpp"
#include "run/estimate.hpp"
#include "run/load_experiment.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::plan {

struct PlanOptions {
  std::optional<experiment::DeviceDescription>
      device;                           // nothing: this machine's, as [run] device of the first case says
  std::optional<std::int32_t> devices;  // how many a machine has; nothing: as the description says
  std::vector<record::CaseRecord> earlier;
  std::string largest;
  bool wants_time = false;     // by earlier runs of the experiment
  std::set<std::size_t> done;  // cases that take no time any more, by their place
};

// The plan of all cases, for one device. Those that run on another kind of device are not planned, and say so.
struct ExperimentPlan {
  CasesPlan plan;
  std::optional<run::Estimate> estimate;      // where it was asked for, of the cases that are not done
  std::vector<experiment::Mistake> mistakes;  // what the plugin itself refuses, where the file says it
};
ExperimentPlan plan_of(const run::LoadedExperiment& loaded, const PlanOptions& options);

// [run] allow has "oom": a case that does not fit is what its author wants to see.
bool allows_oom(const experiment::Experiment& experiment);
// No case is refused, and none does not fit unless it may be oom.
bool is_fine(const CasesPlan& plan, const experiment::Experiment& experiment);

// Prints the table of it, and what belongs below.
void print_plan(const ExperimentPlan& planned, const std::string& largest = "");
// What a dry run adds to its list of cases: the plan, and the mistakes that only the plugin can find. Returns the
// exit code. That nothing could be planned is printed; it is no mistake.
int show_plan_of_dry_run(const run::LoadedExperiment& loaded, const PlanOptions& options);
// The same, of the mistakes alone.
int report_what_plugin_refuses(const run::LoadedExperiment& loaded, const PlanOptions& options);

// Asks the plugin what it calls wrong before a run: the mistakes that its dry run would find without a walk through
// setup and a step. For all cases it takes a child process, and at most some seconds; what could not be asked in them,
// a case finds.
console::RefusedCases refused_by_plugin(const run::LoadedExperiment& loaded,
                                        const std::optional<wireup::LaunchedRank>& launched);

// The device of this machine that [run] device means, with the peaks that its maker states. Opens it in a process of
// its own. Throws experiment::DeviceFileError where it cannot be used.
experiment::DeviceDescription device_of_this_machine(const std::string& wanted);

// For a question about parameters alone: a device of the kind that has enough of everything.
experiment::DeviceDescription usual_device(const std::string& kind);

// "h200" and its like, or "auto", "cpu", "cuda" of this machine. Throws experiment::DeviceFileError.
experiment::DeviceDescription device_asked_for(const std::string& given);

// The records of all named runs: run folders, cases.jsonl, summaries, folders with several of these. Throws NoRunError.
std::vector<record::CaseRecord> earlier_records(const std::vector<std::string>& given);

}  // namespace assay::host::plan
