// oneDNN matrix products, one plan per (shapes, strides, types, options), made once and then found in well under a
// microsecond. While preparing, which of oneDNN's implementations a plan runs is timed (matmul_tuner.hpp), or read from
// the file of what was timed before.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace assay::cpu {

class MatmulCache {
 public:
  struct Plan;  // a primitive with all it needs to run on given addresses

  MatmulCache();
  ~MatmulCache();

  // Whether oneDNN has products of bf16 for this processor: as of 2.6, with AVX-512 alone.
  static bool multiplies_bf16();

  void set_tuning(compute::Tuning);  // of plans that are prepared from here on
  void share_tuning(compute::AlgorithmExchange* with);
  // The plan of these tensors' geometry, made when it is new: without timing anything unless `preparing`. Throws
  // assay::Error (UNSUPPORTED) when oneDNN offers no optimised implementation, or what is to run is fixed and not
  // known.
  Plan& find(const compute::op::Matmul& op, bool preparing);
  void end_preparing();
  static std::size_t scratch_bytes(const Plan& plan);
  void execute(Plan& plan, void* a, void* b, void* c, void* bias, void* scratch);  // no bias: nullptr

  std::vector<compute::PrimitiveInfo> primitives() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::cpu
