// Mixtures of experts.
#include "judge.hpp"

namespace assay::compute {

void AuditedBackend::execute(const op::RouteForward& op) { real().run(op); }
void AuditedBackend::execute(const op::RouteBackward& op) { real().run(op); }
void AuditedBackend::execute(const op::RoutingLosses& op) { real().run(op); }
void AuditedBackend::execute(const op::GroupRows& op) { real().run(op); }
void AuditedBackend::execute(const op::GatherRows& op) { real().run(op); }
void AuditedBackend::execute(const op::CombineRows& op) { real().run(op); }
void AuditedBackend::execute(const op::GroupedMatmul& op) { real().run(op); }
void AuditedBackend::execute(const op::GroupedWeightGradient& op) { real().run(op); }
void AuditedBackend::execute(const op::WeightedGatedForward& op) { real().run(op); }
void AuditedBackend::execute(const op::WeightedGatedBackward& op) { real().run(op); }

}  // namespace assay::compute
