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
  if (!preparing()) {
    const MatmulPlans::Plan& plan = matmuls_->find(call.key);
    matmuls_->execute(plan, call, scratch(MatmulPlans::workspace_bytes(plan)), stream());
    return;
  }
  const auto prepare = [this, key = call.key, lane = lane_] {
    want_scratch(lane, MatmulPlans::workspace_bytes(matmuls_->prepare(key)));
  };
  // Algorithms are timed on a quiet device: what builds attention's plans meanwhile loads code into the same context,
  // and a launch that waits for that would count as a slow one. All products from here on wait, so that they are
  // prepared, and named in the record, in the order of the walk.
  if (attentions_->is_building())
    postponed_.add(prepare);
  else
    prepare();
}

}  // namespace assay::cuda
