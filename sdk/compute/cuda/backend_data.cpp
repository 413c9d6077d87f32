// Moving and making data, embedding, rotary position.
#include <fmt/format.h>

#include "cuda_backend.hpp"
#include "cuda_error.hpp"
#include "kernels/data.hpp"
#include "kernels/embedding.hpp"

namespace assay::cuda {
namespace {

constexpr std::initializer_list<DType> any_float = {DType::f32, DType::bf16, DType::f16};

bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

const std::int64_t* ids_of(const Tensor& t) { return static_cast<const std::int64_t*>(t.data); }

}  // namespace

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

void CudaBackend::fill(const Tensor& x, double value) {
  require_contiguous("fill", x);
  if (preparing()) return;
  if (is_float(x.dtype)) {
    launch_fill_float(stream(), x.dtype, x.data, static_cast<float>(value), x.elements());
    return;
  }
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  launch_fill_bytes(stream(), x.data, size_of(x.dtype), bits, x.elements());
}

void CudaBackend::copy(const Tensor& to, const Tensor& from) {
  require_convertible(to, from);
  if (preparing() || to.elements() == 0) return;
  const CopyShape shape = copy_shape(to, from);
  if (to.dtype == from.dtype)
    launch_copy(stream(), size_of(to.dtype), to.data, from.data, shape);
  else
    launch_convert(stream(), to.dtype, from.dtype, to.data, from.data, shape);
}

void CudaBackend::random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t random_stream, float mean,
                                float std) {
  require_contiguous("random_normal", x);
  require_dtype("random_normal", x, any_float);
  if (preparing()) return;
  launch_random_normal(stream(), x.dtype, x.data, x.elements(), seed, random_stream, mean, std);
}

void CudaBackend::random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t random_stream, std::int64_t low,
                                  std::int64_t high) {
  require_contiguous("random_integers", x);
  require_dtype("random_integers", x, {DType::i64});
  const std::uint64_t range = integer_range(low, high);
  if (preparing()) return;
  launch_random_integers(stream(), static_cast<std::int64_t*>(x.data), x.elements(), seed, random_stream, low, range);
}

void CudaBackend::embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) {
  const EmbeddingShape shape =
      embedding_shape("embedding_forward", ids, table, out, "out [rows, C] for ids [rows] and table [V, C]");
  if (preparing()) return;
  launch_embedding_forward(stream(), out.dtype, table.dtype, out.data, table.data, ids_of(ids), shape.rows, shape.width,
                           shape.table_rows);
}

void CudaBackend::embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) {
  const EmbeddingShape shape =
      embedding_shape("embedding_backward", ids, dtable, dout, "dout [rows, C] for ids [rows] and dtable [V, C]");
  if (preparing()) return;
  launch_embedding_backward(stream(), dtable.dtype, dout.dtype, dtable.data, dout.data, ids_of(ids), shape.rows,
                            shape.width, shape.table_rows, accumulate);
}

void CudaBackend::rotary_table(const Tensor& cos, const Tensor& sin, double theta) {
  require_rotary_table("rotary_table", cos, sin);
  if (preparing()) return;
  launch_rotary_table(stream(), static_cast<float*>(cos.data), static_cast<float*>(sin.data), cos.dim(0), cos.dim(1),
                      theta);
}

void CudaBackend::rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const RotaryShape shape = rotary_shape(x, cos, sin);
  if (preparing()) return;
  launch_rotary(stream(), x.dtype, x.data, static_cast<const float*>(cos.data), static_cast<const float*>(sin.data),
                shape, inverse);
}

}  // namespace assay::cuda
