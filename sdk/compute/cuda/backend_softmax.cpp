// Softmax over the last dimension: argument checks.
#include <fmt/format.h>

#include <limits>

#include "cuda_backend.hpp"
#include "kernels/softmax.hpp"

namespace assay::cuda {
namespace {

SoftmaxArgs softmax_args(const char* operation, const Tensor& x, const Tensor& out, float scale) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_like(operation, x, out);
  require_some_columns(operation, x);
  if (x.dim(-1) > std::numeric_limits<std::int32_t>::max())
    reject(operation, fmt::format("{} columns given; expected fewer than 2^31", x.dim(-1)));
  SoftmaxArgs args{};
  args.type = x.dtype;
  args.x = x.data;
  args.out = out.data;
  args.columns = x.dim(-1);
  args.rows = rows_of(x);
  args.scale = scale;
  args.queries = x.rank >= 2 ? x.dim(-2) : 1;
  return args;
}

}  // namespace

void CudaBackend::softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) {
  SoftmaxArgs args = softmax_args("softmax_forward", x, y, scale);
  args.causal = causal;
  if (!preparing()) cuda::softmax_forward(args, stream());
}

void CudaBackend::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) {
  SoftmaxArgs args = softmax_args("softmax_backward", y, dx, scale);
  require_like("softmax_backward", y, dy);
  args.dy = dy.data;
  if (!preparing()) cuda::softmax_backward(args, stream());
}

}  // namespace assay::cuda
