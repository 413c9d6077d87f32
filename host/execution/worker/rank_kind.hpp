// What several ranks of a case are to each other, for its record.
#pragma once
#include "plugin/schema.hpp"
#include "record/case_record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::worker {

// Says of ranks that are copies how many there are, and of a plugin that cannot say what its ranks are, that it does
// not.
void tell_rank_kind(const CaseSpec& spec, const plugin::WorkloadSchema& schema, std::uint32_t abi_minor,
                    record::CaseResult& result);

}  // namespace assay::host::worker
