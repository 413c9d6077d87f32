// The ranks of a case share what their devices find by timing: each algorithm is timed on one rank of those whose
// devices are alike, and the others run the same.
#pragma once
#include <assay/compute/backend.hpp>

#include <memory>
#include <string_view>

namespace assay::workload {

// While it lives, choices that `backend` prepares are shared. Work that is prepared meanwhile must not communicate:
// other ranks may be waiting for it. The ranks that prepare together use one `name`; a rank that prepares alone, or
// other operations, waits for nobody who does not prepare. Nothing is shared by a single rank, by a device that times
// nothing, or with ASSAY_SHARED_TUNING=0 in the environment. Host and backend must outlive it.
class SharedTuning {
 public:
  SharedTuning(const Host& host, compute::Backend& backend, std::string_view name);
  ~SharedTuning();
  SharedTuning(const SharedTuning&) = delete;
  SharedTuning& operator=(const SharedTuning&) = delete;

 private:
  compute::Backend& backend_;
  std::unique_ptr<compute::AlgorithmExchange> exchange_;  // null: nothing is shared
};

}  // namespace assay::workload
