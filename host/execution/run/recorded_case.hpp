// One case from its plan to its record.
#pragma once
#include <optional>

#include "record/case_record.hpp"
#include "run/case_group.hpp"

namespace assay::host::run {

struct RecordedCase {
  std::optional<record::CaseRecord> record;  // nothing when the run was interrupted before the case had ended
  bool interrupted = false;
};

// Waits a moment for a signal that ends this process, as a scheduler sends it to all processes of a job: workers may
// die of theirs before this process gets its signal.
bool is_told_to_end(const launch::InterruptHandler& interrupts);

// Carries the case out. One that fails because this process or its workers are asked to end interrupts the run. A
// machine that does not let itself be asked makes a record, too.
RecordedCase run_and_record(const CasePlan& planned, const CaseContext& context);

}  // namespace assay::host::run
