// Moving and making data, embedding, rotary position.
#include "cuda_backend.hpp"
#include "cuda_error.hpp"
#include "kernels/data.hpp"
#include "kernels/embedding.hpp"
#include "kernels/latent_keys.hpp"
#include "scratch_sizes.hpp"

namespace assay::cuda {

void CudaBackend::upload(const Tensor& to, const void* host_source) {
  require_contiguous("upload", to);
  if (preparing() || to.elements() == 0) return;
  check(cudaMemcpyAsync(to.data, host_source, to.bytes(), cudaMemcpyHostToDevice, stream()), "upload");
  check(cudaStreamSynchronize(stream()), "upload");
}

void CudaBackend::download(void* host_target, const Tensor& from) {
  require_contiguous("download", from);
  if (preparing() || from.elements() == 0) return;
  check(cudaMemcpyAsync(host_target, from.data, from.bytes(), cudaMemcpyDeviceToHost, stream()), "download");
  check(cudaStreamSynchronize(stream()), "download");
}

void CudaBackend::execute(const op::Fill& op) {
  if (preparing()) return;
  if (is_float(op.x.dtype)) {
    launch_fill_float(stream(), op.x.dtype, op.x.data, static_cast<float>(op.value), op.x.elements());
    return;
  }
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(op.value));
  launch_fill_bytes(stream(), op.x.data, size_of(op.x.dtype), bits, op.x.elements());
}

void CudaBackend::execute(const op::Copy& op) {
  if (preparing() || op.to.elements() == 0) return;
  const CopyShape shape = copy_shape(op.to, op.from);
  if (op.to.dtype == op.from.dtype)
    launch_copy(stream(), size_of(op.to.dtype), op.to.data, op.from.data, shape);
  else
    launch_convert(stream(), op.to.dtype, op.from.dtype, op.to.data, op.from.data, shape);
}

void CudaBackend::execute(const op::Quantize& op) {
  if (preparing()) return;
  launch_quantize(stream(), op.y.dtype, op.x.dtype, op.y.data, op.transposed.data, op.x.data,
                  data_of<float>(op.max_abs), data_of<float>(op.inverse_scale), rows_of(op.x), op.x.dim(-1));
}

void CudaBackend::execute(const op::QuantizeRows& op) {
  require_countable(op.name, op.x);
  if (preparing()) return;
  launch_quantize_rows(stream(), op.y.dtype, op.x.dtype, op.y.data, data_of<float>(op.inverse_scale), op.x.data,
                       op.x.dim(0), op.x.dim(1));
}

void CudaBackend::execute(const op::QuantizeColumns& op) {
  require_countable(op.name, op.x);
  const std::int64_t rows = op.x.dim(0), columns = op.x.dim(1);
  auto* const partials = static_cast<float*>(scratch(column_partial_floats(rows, columns) * sizeof(float)));
  if (preparing()) return;
  launch_quantize_columns(stream(), op.y.dtype, op.x.dtype, op.y.data, data_of<float>(op.inverse_scale), partials,
                          op.x.data, rows, columns);
}

void CudaBackend::execute(const op::TransposeEightBits& op) {
  require_countable(op.name, op.y);
  const std::int64_t rows = op.x.dim(0);
  float* const shares =
      op.scale ? static_cast<float*>(scratch(static_cast<std::size_t>(rows) * sizeof(float))) : nullptr;
  if (preparing()) return;
  launch_transpose_eight_bits(stream(), op.y.data, op.x.data, data_of<float>(op.scale), data_of<float>(op.other_scale),
                              shares, data_of<float>(op.inverse_scale), rows, op.x.dim(1), op.y.dim(1));
}

void CudaBackend::execute(const op::RandomNormal& op) {
  if (preparing()) return;
  launch_random_normal(stream(), op.x.dtype, op.x.data, op.x.elements(), op.seed, op.stream, op.mean, op.std);
}

void CudaBackend::execute(const op::RandomIntegers& op) {
  const std::uint64_t range = integer_range(op);
  if (preparing()) return;
  launch_random_integers(stream(), data_of<std::int64_t>(op.x), op.x.elements(), op.seed, op.stream, op.low, range);
}

void CudaBackend::execute(const op::EmbeddingForward& op) {
  if (preparing()) return;
  launch_embedding_forward(stream(), op.out.dtype, op.table.dtype, op.out.data, op.table.data,
                           data_of<std::int64_t>(op.ids), op.ids.elements(), op.table.dim(1), op.table.dim(0));
}

void CudaBackend::execute(const op::EmbeddingBackward& op) {
  auto* const marks = static_cast<std::uint32_t*>(
      scratch(embedding_marks(op.ids.elements(), op.dtable.dim(0)) * sizeof(std::uint32_t)));
  if (preparing()) return;
  launch_embedding_backward(stream(), op.dtable.dtype, op.dout.dtype, op.dtable.data, op.dout.data,
                            data_of<std::int64_t>(op.ids), op.ids.elements(), op.dtable.dim(1), op.dtable.dim(0),
                            op.accumulate, marks);
}

void CudaBackend::execute(const op::RotaryTable& op) {
  if (preparing()) return;
  launch_rotary_table(stream(), data_of<float>(op.cos), data_of<float>(op.sin), op.cos.dim(0), op.cos.dim(1),
                      compute::rotary_curve(op.theta, op.scaling, op.cos.dim(1)));
}

void CudaBackend::execute(const op::Rotary& op) {
  const RotaryShape shape = rotary_shape(op);
  if (preparing()) return;
  launch_rotary(stream(), op.x.dtype, op.x.data, data_of<float>(op.cos), data_of<float>(op.sin), shape, op.inverse);
}

void CudaBackend::execute(const op::LatentKeysForward& op) {
  if (preparing()) return;
  launch_latent_keys_forward(stream(), op.k.dtype, op.k.data, op.nope.data, op.shared.data, data_of<float>(op.cos),
                             data_of<float>(op.sin), latent_keys_shape(op));
}

void CudaBackend::execute(const op::LatentKeysBackward& op) {
  if (preparing()) return;
  launch_latent_keys_backward(stream(), op.dk.dtype, op.dnope.data, op.dshared.data, op.dk.data, data_of<float>(op.cos),
                              data_of<float>(op.sin), latent_keys_shape(op));
}

}  // namespace assay::cuda
