// A case whose kernels Nsight Compute counts ([profile] ncu): what it leaves in the run folder, and what the record has
// of it. Such a case is no measurement, and its record has no time.
#pragma once
#include <filesystem>

#include "record/case_record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

// By the experiment, on a device for which there is ncu.
bool is_counted(const worker::CaseSpec& spec);

// "ncu_case-0001.csv" in the run folder: ncu writes it.
std::filesystem::path table_of_ncu(const worker::CaseSpec& spec);

// Before the case starts: what an earlier start has left would be taken for its own.
void forget_counts(const worker::CaseSpec& spec);

// After the worker and ncu have ended. Of a case that is ok: takes its times away, reads the table into `ncu`, and
// writes the one for people beside it; without a table that can be used the case has failed, and the reason says why
// and what to do. Of a worker that has left no result: adds what ncu complains of.
void take_counts(const worker::CaseSpec& spec, record::CaseResult& result);

}  // namespace assay::host::run
