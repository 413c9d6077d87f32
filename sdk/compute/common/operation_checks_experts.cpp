// Checks of mixtures of experts.
#include <fmt/format.h>

#include "common/operation_checks.hpp"

namespace assay::compute {

void check(const op::RouteForward&) {}
void check(const op::RouteBackward&) {}
void check(const op::RoutingLosses&) {}
void check(const op::GroupRows&) {}
void check(const op::GatherRows&) {}
void check(const op::CombineRows&) {}
void check(const op::GroupedMatmul&) {}
void check(const op::GroupedWeightGradient&) {}
void check(const op::WeightedGatedForward&) {}
void check(const op::WeightedGatedBackward&) {}

}  // namespace assay::compute
