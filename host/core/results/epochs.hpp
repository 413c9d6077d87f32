// The epochs of a training run, for the summary: one entry per measured epoch of each case whose steps are epochs.
#pragma once
#include "record/case_record.hpp"

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace assay::host::results {

// The epochs of the records whose metric `measured_unit` is the word "epoch", as a list of
//   {"case", "epoch" (from 1), "wall_time_s", "<items>_per_s" (of all ranks), "peak_memory_mib" and
//   "utilisation_percent"
//    (where epochs are long enough for it), what the workload reports of every step}.
nlohmann::ordered_json epochs_json(const std::vector<record::CaseRecord>& records);

// Over all these epochs: {"epochs", "mean_epoch_time_s", "<items>_per_s", "peak_memory_mib", "utilisation_percent"},
// one entry per case. Null when there are none.
nlohmann::ordered_json epochs_summary_json(const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
