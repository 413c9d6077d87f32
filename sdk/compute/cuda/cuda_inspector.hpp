// The inspector of a GPU: its own kernels over tensors where they lie (kernels/inspect.hpp). If device memory is short,
// it computes on the host.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

#include "common/host_inspector.hpp"
#include "cuda_handles.hpp"

namespace assay::cuda {

class CudaInspector final : public compute::Inspector {
 public:
  CudaInspector(compute::Backend& backend, cudaStream_t stream) : on_host_(backend), stream_(stream) {}

  std::vector<double> read(const compute::Tensor& t) override;
  std::vector<double> read(const compute::Tensor& t, const std::vector<compute::RowSegment>& segments) override;
  std::vector<float> read(const compute::Tensor& t, const std::vector<compute::ElementSpan>& spans) override;
  std::uint64_t hash(const compute::Tensor& t) override;
  compute::MatrixSums sum_matrix(const compute::Tensor& t, const compute::LineWeights& over_columns,
                                 const compute::LineWeights& over_rows) override;
  std::vector<compute::WeightedSum> sum_spans(const compute::Tensor& t, const std::vector<compute::WeightedSpan>& spans,
                                              const std::vector<float>& weights) override;
  std::vector<double> product(const std::vector<double>& x, std::int64_t rows, const compute::Tensor& w) override;
  compute::BlockSums difference_from_product(const compute::Tensor& found, float factor, const std::vector<double>& a,
                                             const std::vector<double>& b, std::int64_t rows) override;
  std::unique_ptr<compute::KeptTensor> keep(const compute::Tensor& t, std::int64_t most_on_host) override;
  compute::BlockSums difference(const compute::KeptTensor& found, const compute::Tensor& expected) override;
  void release_memory() override;

 private:
  class Room;
  bool make_room(std::size_t bytes);

  compute::HostInspector on_host_;
  cudaStream_t stream_;
  DeviceMemory memory_;  // grows, and stays until release_memory()
  std::size_t bytes_ = 0;
};

}  // namespace assay::cuda
