// What a workload knows of the work of its steps, and of the most that its device does.
#pragma once
#include <assay/abi.h>

#include "record/case_record.hpp"
#include "worker/host_services.hpp"

#include <functional>
#include <optional>
#include <string>

namespace assay::host::worker {

// "bf16"; "" for what is not stated, and for what a newer plugin states.
std::string arithmetic_name(assay_arithmetic arithmetic);

// By trial (assay.peak/1), after everything else. Nothing where the workload offers none, or could not.
std::optional<record::Peak> measured_peak(const assay_workload& workload, assay_workload_self* object,
                                          HostServices& services);

// The peak held against the steps: one that they exceed is tried again, since a neighbour or a dropped clock makes a
// single trial too low.
struct CheckedPeak {
  std::optional<record::Peak> peak;
  std::string mistake;  // "" unless the steps did more operations than the device can do
};
// `try_peak`: one trial; `gflop_per_s`: of the steps; `is_contended`: whether other programs took processors while it
// was tried, in which case nothing follows from a peak that is too low.
CheckedPeak checked_peak(const std::function<std::optional<record::Peak>()>& try_peak, double gflop_per_s,
                         const std::function<bool()>& is_contended);
// Of a case. `is_shared`: other processes worked on the device while the steps were measured.
CheckedPeak checked_peak(const assay_workload& workload, assay_workload_self* object, HostServices& services,
                         double gflop_per_s, bool is_shared);

}  // namespace assay::host::worker
