// A matrix product for the probes, straight from cuBLASLt: in its own terms, by columns, so that a probe asks the
// library and not assay's layer above it.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_handles.hpp"
#include "lt_problem.hpp"

namespace assay::cuda {

enum class ProbeData { zeros, normal, weights };  // N(0, 1) and N(0, 0.02)

struct ProductForm {
  cudaDataType_t a = CUDA_R_16BF, b = CUDA_R_16BF, d = CUDA_R_16BF;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = true, transpose_b = false;
};

// The algorithms that cuBLASLt's heuristics name for a form; empty: it takes none.
class ProbeProblem {
 public:
  explicit ProbeProblem(const ProductForm& form);
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(cublasLtHandle_t handle, int most) const;
  void run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* d,
           void* workspace, std::size_t workspace_bytes, cudaStream_t stream) const;

 private:
  LtDescription description_;
  LtLayout a_, b_, d_;
};

// One of bf16, with its operands, that can be run many times on its own stream.
class ProbeProduct {
 public:
  static ProductForm large_cube() { return {.m = 8192, .n = 8192, .k = 8192}; }

  ProbeProduct(const ProductForm& form, ProbeData data);
  // Of `times` launches in a row, on the device.
  double time_us(int times) const;
  int algorithms() const { return static_cast<int>(algorithms_.size()); }
  // The result of one of them, as its bits.
  std::vector<std::uint16_t> result_of(int algorithm) const;

 private:
  ProductForm form_;
  LtHandle handle_;
  ProbeProblem problem_;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;
  Stream stream_;
  DeviceMemory a_, b_, d_, workspace_;
};

}  // namespace assay::cuda
