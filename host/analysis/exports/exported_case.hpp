// Every format writes these of a case.
#pragma once
#include <string>

#include "record/case_record.hpp"

namespace assay::host::exports {

// The times of the whole step; null where the case has none.
const record::Phase* step_of(const record::CaseRecord& record);
// "decoder/heads:8/run.ranks:2": the workload and what tells the case from the others of its run.
std::string name_of(const record::CaseRecord& record);

}  // namespace assay::host::exports
