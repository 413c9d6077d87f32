// cuBLASLt's matrix products: descriptors and the algorithm of each key are made once, while preparing, and then found
// in well under a microsecond.
//
// An algorithm is chosen by timing the candidates of cuBLASLt's heuristics on memory taken for that moment, which goes
// again when preparing ends; winners are kept on disk (common/algorithm_cache.hpp), unless the GPU was used by others
// meanwhile. With ASSAY_MATMUL_TUNE=0 in the environment, or too little free memory, the heuristics' first is taken;
// with ASSAY_ALGORITHMS=fixed what is not on disk is refused. With Tuning::first_choice nothing is timed or written,
// and nothing is refused. Of several ranks one times, where their GPUs are alike (common/shared_algorithms.hpp).
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/backend.hpp>

#include <memory>
#include <string>
#include <vector>

#include "common/shared_algorithms.hpp"
#include "matmul_key.hpp"

namespace assay::cuda {

class MatmulPlans {
 public:
  struct Plan;

  // No call of cuBLASLt before the first prepare(). `shared` must outlive it.
  MatmulPlans(int ordinal, compute::SharedAlgorithms& shared);
  ~MatmulPlans();
  MatmulPlans(const MatmulPlans&) = delete;
  MatmulPlans& operator=(const MatmulPlans&) = delete;

  // cuBLASLt, and which of its algorithms are tried: where other candidates compete, earlier winners prove nothing.
  static std::string library();
  void set_tuning(compute::Tuning);  // of plans that are made from here on
  // Makes the key's plan unless it is there. UNSUPPORTED when cuBLASLt has no algorithm for it.
  const Plan& prepare(const MatmulKey& key);
  // INVALID_ARGUMENT for a key that was never prepared.
  const Plan& find(const MatmulKey& key) const;
  static std::size_t workspace_bytes(const Plan& plan);
  // Enqueues call.outer products. Waits for nothing, allocates nothing on the device, and may be captured.
  void execute(const Plan& plan, const MatmulCall& call, void* workspace, cudaStream_t stream) const;
  void end_preparing();  // frees the memory for timing and keeps what was found on disk

  std::vector<compute::PrimitiveInfo> primitives() const;  // in order of preparation

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::cuda
