// Mixtures of experts, broken.
#include "mutant_backend.hpp"

namespace assay::mutants {

void MutantBackend::execute(const op::RouteForward& op) { real().run(op); }
void MutantBackend::execute(const op::RouteBackward& op) { real().run(op); }
void MutantBackend::execute(const op::RoutingLosses& op) { real().run(op); }
void MutantBackend::execute(const op::GroupRows& op) { real().run(op); }
void MutantBackend::execute(const op::GatherRows& op) { real().run(op); }
void MutantBackend::execute(const op::CombineRows& op) { real().run(op); }
void MutantBackend::execute(const op::GroupedMatmul& op) { real().run(op); }
void MutantBackend::execute(const op::GroupedWeightGradient& op) { real().run(op); }
void MutantBackend::execute(const op::WeightedGatedForward& op) { real().run(op); }
void MutantBackend::execute(const op::WeightedGatedBackward& op) { real().run(op); }

}  // namespace assay::mutants
