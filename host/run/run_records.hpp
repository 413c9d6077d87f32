// What a run puts into the record of a case, and what it reads in those of earlier ones.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "record/case_record.hpp"
#include "run/plan.hpp"
#include "run/target.hpp"

namespace assay::host::run {

// The record of a case: what was planned, and what became of it.
record::CaseRecord full_record(const CasePlan& planned, const RunTarget& target, record::CaseResult result,
                               const std::string& started);

// finished_key() of the cases that another run could not make better: those with any other status run again on
// --resume.
std::set<std::string> finished_keys(const std::vector<record::CaseRecord>& records,
                                    const std::vector<std::string>& allow);

// Every case of the experiment has a record that is ok or has a status in `allow`.
bool are_ok_or_allowed(const std::vector<record::CaseRecord>& records, const experiment::Experiment& experiment,
                       const std::vector<std::string>& allow);

}  // namespace assay::host::run
