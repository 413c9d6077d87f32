// A matrix product in cuBLASLt's terms. cuBLASLt thinks in columns and we in rows, and a matrix by rows is its own
// transpose by columns: so c' = op(b)' op(a)' is what it is asked for, with our b as its first operand.
#pragma once
#include <cublasLt.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cuda_handles.hpp"
#include "matmul_key.hpp"

namespace assay::cuda {

using LtHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using LtDescription = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

// Throws OUT_OF_MEMORY, or DEVICE_ERROR, with `what` and cuBLASLt's own words.
void check_lt(cublasStatus_t status, const std::string& what);

struct LtAlgorithm {
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
};
std::string describe(const LtAlgorithm& algorithm);  // "algo 66 tile 20 stages 36 cluster 3 split-k 1"

// Addresses of one product. The bias, the residual and the scales are looked at when the key has them.
struct LtOperands {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  const void *bias = nullptr, *residual = nullptr;
  float residual_scale = 1.0F;
  const float *a_scale = nullptr, *b_scale = nullptr;
};

class LtProblem {
 public:
  // The most workspace that an algorithm may ask for.
  static constexpr std::size_t workspace_limit_bytes = std::size_t{64} << 20;

  explicit LtProblem(const MatmulKey& key);

  // What the heuristics offer, best guess first. Empty when there is none.
  std::vector<LtAlgorithm> candidates(cublasLtHandle_t handle, int most) const;
  // The same algorithm with tiles of other sizes (the heuristics offer few). First come those with the least estimated
  // time by the tiles of the fullest multiprocessor.
  std::vector<LtAlgorithm> with_other_tiles(cublasLtHandle_t handle, const LtAlgorithm& like, int multiprocessors,
                                            int most) const;
  // Fills in the workspace of an algorithm that comes from elsewhere; false when it cannot run here.
  bool accepts(cublasLtHandle_t handle, LtAlgorithm& algorithm) const;
  // One key's worth of products.
  cublasStatus_t run(cublasLtHandle_t handle, const LtAlgorithm& algorithm, float alpha, const LtOperands& at,
                     void* workspace, cudaStream_t stream) const;

 private:
  MatmulKey key_;
  LtDescription description_;
  LtLayout a_, b_, c_;
};

}  // namespace assay::cuda
