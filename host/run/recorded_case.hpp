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

// Carries the case out. A machine that does not let itself be asked makes a record, too.
RecordedCase run_and_record(const CasePlan& planned, const CaseContext& context);

}  // namespace assay::host::run
