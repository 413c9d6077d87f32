// What Muon does to its matrices before and after their products (kernels/optimizer.hpp has the optimizers that need
// none). Matrices of a batch are rows: their elements lie one after the other, and a step leads from each to the next.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/operations/optimizers.hpp>

#include <cstdint>

#include "kernels/optimizer.hpp"

namespace assay::cuda {

template <class Void>
struct MuonMatrices {
  compute::DType type;
  Void* data;
  std::int64_t step;  // elements from one matrix to the next
};

struct MuonShape {
  std::int64_t matrices, elements;  // of each
  int multiprocessors;              // of the device, for the size of the grid: it changes no result
};

struct MuonMomentumArgs {
  MuonShape shape;
  MuonMatrices<const void> gradient;
  MuonMatrices<void> momentum, update;
  LossScalePointers loss_scale;
};
// `partials`: normalize_partials(shape.matrices, shape.elements) doubles.
struct NormalizeRowsArgs {
  MuonShape shape;
  MuonMatrices<void> x;
  float eps;
  double* partials;
};
struct MuonUpdateArgs {
  MuonShape shape;
  MuonMatrices<void> parameter;
  MuonMatrices<const void> update;
  MuonMatrices<void> compute_copy;  // data nullptr: none
  const float* lr;
  LossScalePointers loss_scale;
};

void muon_momentum(const MuonMomentumArgs&, const compute::MuonOptions&, cudaStream_t);
void normalize_rows(const NormalizeRowsArgs&, cudaStream_t);
void muon_update(const MuonUpdateArgs&, const compute::MuonUpdateOptions&, cudaStream_t);

}  // namespace assay::cuda
