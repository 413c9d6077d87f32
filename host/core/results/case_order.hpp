// Chooses the records of a run that count, and their order.
#pragma once
#include "record/case_record.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

// The last record of each case, in the order of the experiment's cases. A record belongs to the case that has its axes
// and parameters, wherever that case stood when it ran: an experiment may have grown since, and then the record gets
// the case's index. Records of cases that the experiment has no more (or that a filter leaves out) stay, by their
// index, as former ones.
std::vector<record::CaseRecord> current_records(const experiment::Experiment& experiment,
                                                std::vector<record::CaseRecord> records);

// The places of the experiment's cases by index and repeat.
using CaseNumber = std::pair<std::int64_t, std::int64_t>;
std::map<CaseNumber, std::size_t> places_by_number(const experiment::Experiment& experiment);

// Whether they name the same values, in whatever order.
bool are_equal(const record::Named<Value>& named, const std::map<std::string, Value>& values);

// The last record of each case where its experiment is not known: of each workload, axes, parameters and repeat. In the
// order of the file.
std::vector<record::CaseRecord> last_of_each_case(std::vector<record::CaseRecord> records);

}  // namespace assay::host::results
