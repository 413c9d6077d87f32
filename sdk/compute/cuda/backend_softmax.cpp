// Softmax over the last dimension.
#include "cuda_backend.hpp"
#include "kernels/softmax.hpp"

namespace assay::cuda {
namespace {

SoftmaxArgs softmax_args(const char* operation, const Tensor& x, const Tensor& out, float scale) {
  require_countable(operation, x);
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

template <class Op>
void set_kind(SoftmaxArgs& args, const Op& op) {
  args.soft_cap = op.soft_cap;
  if (op.lse) args.lse = data_of<float>(op.lse);
  args.sinks = SinkVector(op.sinks);
  args.heads = op.sinks.elements();
}

}  // namespace

void CudaBackend::execute(const op::SoftmaxForward& op) {
  SoftmaxArgs args = softmax_args(op.name, op.x, op.y, op.scale);
  args.causal = op.causal;
  args.window = op.window;
  if (op.first_keys) {
    args.first_keys = data_of<std::int32_t>(op.first_keys);
    args.first_keys_stride = op.first_keys.step(0);
    args.rows_of_sequence = op.x.dim(1) * op.x.dim(2);
  }
  set_kind(args, op);
  if (!preparing()) cuda::softmax_forward(args, stream());
}

void CudaBackend::execute(const op::SoftmaxBackward& op) {
  SoftmaxArgs args = softmax_args(op.name, op.y, op.dx, op.scale);
  args.dy = op.dy.data;
  set_kind(args, op);
  args.dsinks = SinkVector(op.dsinks);
  args.accumulate = op.accumulate;
  if (!preparing()) cuda::softmax_backward(args, stream());
}

}  // namespace assay::cuda
