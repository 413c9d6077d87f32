// A run whose cases take different numbers of GPUs or ranks has a summary for each: which cases are in which.
#pragma once
#include "record/case_record.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::host::experiment {
struct Experiment;
}

namespace assay::host::results {

struct SummaryPart {
  bool on_gpu = false;     // one GPU for each rank
  std::int64_t ranks = 1;  // the most of them, where a part has cases of several
  std::vector<record::CaseRecord> records;
  std::size_t planned = 0;  // the cases of the experiment that belong here, finished or not

  std::int64_t gpus() const { return on_gpu ? ranks : 0; }
};

// Every record is in exactly one part; those on the CPU come first, then fewer ranks before more. A case that has not
// run yet is planned where its number of ranks is; one whose number only its run would show is planned in the first
// part. Never empty.
std::vector<SummaryPart> summary_parts(const experiment::Experiment& experiment,
                                       const std::vector<record::CaseRecord>& records);

// All cases in one part.
SummaryPart whole_run(const experiment::Experiment& experiment, const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
