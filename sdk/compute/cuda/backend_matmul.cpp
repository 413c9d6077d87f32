// Matrix products: mapping in matmul_key, algorithms in matmul_plans.
#include "cuda_backend.hpp"
#include "matmul_plans.hpp"

namespace assay::cuda {
namespace {

// What is left of a product whose inner dimension is 0. All bytes 0 are a 0 in every type.
void clear(const MatmulCall& call, cudaStream_t stream) {
  const MatmulKey& key = call.key;
  const std::size_t width = size_of(key.output);
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * width; };
  for (std::int64_t outer = 0; outer < call.outer; ++outer)
    for (std::int64_t i = 0; i < key.batch; ++i) {
      char* const matrix = static_cast<char*>(call.c) + bytes(outer * call.c_outer_step + i * key.c_step);
      check(cudaMemset2DAsync(matrix, bytes(key.ldc), 0, bytes(key.n), static_cast<std::size_t>(key.m), stream),
            "clear the result of a matrix product");
    }
}

}  // namespace

void CudaBackend::execute(const op::Matmul& op) {
  if (op.c.elements() == 0) return;
  MatmulCall call = matmul_call(op, math_);
  if (left_multiprocessors_ > 0) call.key.multiprocessors = multiprocessors_ - left_multiprocessors_;
  if (call.key.k == 0) {
    if (!preparing() && !op.accumulate) clear(call, stream());
    return;
  }
  const MatmulPlans::Plan& plan = preparing() ? matmuls_->prepare(call.key) : matmuls_->find(call.key);
  void* const workspace = scratch(MatmulPlans::workspace_bytes(plan));
  if (!preparing()) matmuls_->execute(plan, call, workspace, stream());
}

}  // namespace assay::cuda
