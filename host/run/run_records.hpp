// Reads and makes the records of a run. Beside rank_report this is the one file of host/run that knows their keys.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/record.hpp"
#include "run/found_device.hpp"
#include "run/plan.hpp"
#include "run/target.hpp"

namespace assay::host {

// The answer of probe_device(), and the same in the result line of a worker that was asked for it; nothing when it is
// none.
FoundDevice found_device_of(const Record& answer);
std::optional<FoundDevice> found_device_in(const std::string& result_line);

// The record of a case: what was planned, and the part of its ranks.
Record full_record(const CasePlan& planned, const RunTarget& target, Record part, const std::string& started);

// The hashes of the cases that another run could not make better: those with any other status run again on --resume.
std::set<std::string> finished_hashes(const std::vector<Record>& records, const std::vector<std::string>& allow);

// Every record of a case of the experiment is ok, or has a status in `allow`.
bool are_ok_or_allowed(const std::vector<Record>& records, const Experiment& experiment,
                       const std::vector<std::string>& allow);

}  // namespace assay::host
