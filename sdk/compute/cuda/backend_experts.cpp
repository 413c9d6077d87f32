// Mixtures of experts.
#include "cuda_backend.hpp"

namespace assay::cuda {

void CudaBackend::execute(const op::RouteForward& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::RouteBackward& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::RoutingLosses& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::GroupRows& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::GatherRows& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::CombineRows& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::WeightedGatedForward& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::WeightedGatedBackward& op) { reject(op.name, "not served yet"); }

}  // namespace assay::cuda
