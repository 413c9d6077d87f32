// Products of groups of rows.
#include "cuda_backend.hpp"

namespace assay::cuda {

void CudaBackend::execute(const op::GroupedMatmul& op) { reject(op.name, "not served yet"); }
void CudaBackend::execute(const op::GroupedWeightGradient& op) { reject(op.name, "not served yet"); }

}  // namespace assay::cuda
