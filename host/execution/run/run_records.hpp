// What a run puts into the record of a case, and whether its records are good.
#pragma once
#include <string>
#include <vector>

#include "record/case_record.hpp"
#include "run/plan.hpp"
#include "run/target.hpp"

namespace assay::host::run {

// The record of a case: what was planned, and what became of it.
record::CaseRecord full_record(const CasePlan& planned, const RunTarget& target, record::CaseResult result,
                               const std::string& started);

// Every case of the experiment has a record that is ok or has a status in `allow`.
bool are_ok_or_allowed(const std::vector<record::CaseRecord>& records, const experiment::Experiment& experiment,
                       const std::vector<std::string>& allow);

}  // namespace assay::host::run
