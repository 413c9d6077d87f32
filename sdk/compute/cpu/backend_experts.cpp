// Mixtures of experts.
#include "cpu_backend.hpp"

namespace assay::cpu {

void CpuBackend::execute(const op::RouteForward& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::RouteBackward& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::RoutingLosses& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::GroupRows& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::GatherRows& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::CombineRows& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::GroupedMatmul& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::GroupedWeightGradient& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::WeightedGatedForward& op) { reject(op.name, "not served yet"); }
void CpuBackend::execute(const op::WeightedGatedBackward& op) { reject(op.name, "not served yet"); }

}  // namespace assay::cpu
