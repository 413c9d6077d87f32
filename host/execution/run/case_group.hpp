// Carries one case out on all of its ranks, be it one or many, here or elsewhere.
#pragma once
#include <filesystem>
#include <optional>

#include "launch/signals.hpp"
#include "record/case_record.hpp"
#include "run/crew.hpp"
#include "run/plan.hpp"
#include "run/stage_progress.hpp"
#include "run/taken_files.hpp"
#include "run/target.hpp"
#include "run/verified_cases.hpp"

namespace assay::host::run {

// All cases of a run share this.
struct CaseContext {
  const RunTarget& target;
  TakenFiles& files;
  const launch::InterruptHandler& interrupts;
  Crew& crew;
  std::filesystem::path run_folder;
  StageProgress on_progress;
  VerifiedCases& verified;
};

// What became of the case. With `interrupted` true the run ends here; there is no result when the case did not end by
// itself.
struct CaseOutcome {
  std::optional<record::CaseResult> result;
  bool interrupted = false;
  bool asked_to_end = false;  // the rank that failed was, by a SIGTERM that was not the host's
};

// Blocks until all ranks have ended. Throws LaunchError when this machine does not let itself be asked.
CaseOutcome carry_out(const CasePlan& planned, const CaseContext& context);

}  // namespace assay::host::run
