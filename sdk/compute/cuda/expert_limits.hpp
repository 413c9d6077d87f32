// What the kernels of mixtures of experts do not serve, in words; empty where they do. Plain C++: the device that
// stands in for a GPU (compute/planned) refuses the same.
#pragma once
#include <assay/compute/operations.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include "cuda/scratch_sizes.hpp"

namespace assay::cuda {

inline std::string refusal_of_experts(std::int64_t experts, std::int64_t choices) {
  if (experts > most_experts)
    return std::to_string(experts) + " experts given; expected at most " + std::to_string(most_experts);
  if (choices > std::numeric_limits<std::int32_t>::max())
    return std::to_string(choices) + " choices given; expected fewer than 2^31";
  return {};
}
inline std::string refusal_of_experts(const compute::op::RouteForward& op) {
  return refusal_of_experts(op.scores.dim(1), op.experts.elements());
}
inline std::string refusal_of_experts(const compute::op::RouteBackward& op) {
  return refusal_of_experts(op.scores.dim(1), op.experts.elements());
}
inline std::string refusal_of_experts(const compute::op::RoutingLosses& op) {
  return refusal_of_experts(op.scores.dim(1), 0);
}
inline std::string refusal_of_experts(const compute::op::GroupRows& op) {
  return refusal_of_experts(op.counts.dim(0), op.experts.elements());
}
// Of grouped products.
inline std::string refusal_of_groups(std::int64_t groups, std::int64_t rows) {
  if (groups > most_experts)
    return std::to_string(groups) + " groups given; expected at most " + std::to_string(most_experts);
  constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max() - 128 * most_experts;
  if (rows > most_rows) return std::to_string(rows) + " rows given; expected at most " + std::to_string(most_rows);
  return {};
}
inline std::string refusal_of_experts(const compute::op::GroupedMatmul& op) {
  return refusal_of_groups(op.b.dim(0), op.a.dim(0));
}
inline std::string refusal_of_experts(const compute::op::GroupedWeightGradient& op) {
  return refusal_of_groups(op.dw.dim(0), op.dy.dim(0));
}

// Whether the kernel of the matrix units that makes a gradient can also update: all of it in bf16, and no copy.
inline bool updates_in_bf16(const compute::op::GroupedWeightGradient& op) {
  constexpr auto bf16 = compute::DType::bf16;
  const compute::WeightUpdate& u = op.update;
  return u.any() && op.dy.dtype == bf16 && op.dw.dtype == bf16 && u.parameter.dtype == bf16 && u.m.dtype == bf16 &&
         u.v.dtype == bf16 && !u.compute_copy && op.dw.dim(1) % 8 == 0 && op.dw.dim(2) % 8 == 0;
}

}  // namespace assay::cuda
