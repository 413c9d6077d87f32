// The account of steps: two kernels of one block each, whose time is their launch.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

namespace assay::cuda {

struct SpoiledPlaces {
  compute::DType type;
  void* x;
  const std::int64_t* places;
  std::int64_t place_count;
  float* loss;  // null: there is none
};

struct StepMarks {
  struct Summed {
    compute::DType type;
    const void* x;  // null: counts as 0
  };
  std::int64_t* count;
  float* marks;
  std::int64_t rows;
  const float* loss;  // null: counts as 0
  Summed results, state;
  const std::int64_t* places;
  std::int64_t place_count;
};

void spoil_places(const SpoiledPlaces&, cudaStream_t);
void mark_step(const StepMarks&, cudaStream_t);

}  // namespace assay::cuda
