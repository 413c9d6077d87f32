// Every format writes these of a case.
#pragma once
#include <string>

#include "record/case_record.hpp"

namespace assay::host::exports {

// "decoder/heads:8/run.ranks:2": the workload and what distinguishes the case within its run.
std::string name_of(const record::CaseRecord& record);

}  // namespace assay::host::exports
