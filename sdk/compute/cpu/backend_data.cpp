// Moving and making data, embedding, rotary position.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cpu_backend.hpp"
#include "kernels/data.hpp"

namespace assay::cpu {
namespace {

constexpr std::initializer_list<DType> any_float = {DType::f32, DType::bf16, DType::f16};

bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

// A workload's bad id must not read or write another tensor's memory.
void require_ids(const char* operation, const Tensor& ids, std::int64_t table_rows) {
  const auto* const first = static_cast<const std::int64_t*>(ids.data);
  const auto* const bad =
      std::find_if(first, first + ids.elements(), [=](std::int64_t id) { return id < 0 || id >= table_rows; });
  if (bad == first + ids.elements()) return;
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("{} on the CPU: id {} at position {}; expected 0 <= id < {}, the rows of the table",
                          operation, *bad, bad - first, table_rows));
}

}  // namespace

void CpuBackend::upload(const Tensor& to, const void* host_source) {
  require_contiguous("upload", to);
  if (!preparing() && to.bytes() > 0) std::memcpy(to.data, host_source, to.bytes());
}

void CpuBackend::download(void* host_target, const Tensor& from) {
  require_contiguous("download", from);
  if (!preparing() && from.bytes() > 0) std::memcpy(host_target, from.data, from.bytes());
}

void CpuBackend::fill(const Tensor& x, double value) {
  require_contiguous("fill", x);
  if (preparing()) return;
  const DataKernels& kernels = data_kernels(isa_);
  if (is_float(x.dtype)) {
    kernels.fill_float[index_of(x.dtype)](x.data, static_cast<float>(value), x.elements());
    return;
  }
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  const auto width = static_cast<unsigned>(size_of(x.dtype));
  kernels.fill_bytes[std::countr_zero(width)](x.data, bits, x.elements());
}

void CpuBackend::copy(const Tensor& to, const Tensor& from) {
  require_convertible(to, from);
  if (preparing() || to.elements() == 0) return;
  const DataKernels& kernels = data_kernels(isa_);
  const CopyShape shape = copy_shape(to, from);
  if (to.dtype == from.dtype)
    kernels.copy_bytes[std::countr_zero(static_cast<unsigned>(size_of(to.dtype)))](to.data, from.data, shape);
  else
    kernels.convert[index_of(to.dtype)][index_of(from.dtype)](to.data, from.data, shape);
}

void CpuBackend::random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) {
  require_contiguous("random_normal", x);
  require_dtype("random_normal", x, any_float);
  if (preparing()) return;
  data_kernels(isa_).random_normal[index_of(x.dtype)](x.data, x.elements(), seed, stream, mean, std);
}

void CpuBackend::random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                                 std::int64_t high) {
  require_contiguous("random_integers", x);
  require_dtype("random_integers", x, {DType::i64});
  const std::uint64_t range = integer_range(low, high);
  if (preparing()) return;
  data_kernels(isa_).random_integers(static_cast<std::int64_t*>(x.data), x.elements(), seed, stream, low, range);
}

void CpuBackend::embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) {
  constexpr const char* operation = "embedding_forward";
  const EmbeddingShape shape =
      embedding_shape(operation, ids, table, out, "out [rows, C] for ids [rows] and table [V, C]");
  if (preparing()) return;
  require_ids(operation, ids, shape.table_rows);
  data_kernels(isa_).embedding_forward[index_of(out.dtype)][index_of(table.dtype)](
      out.data, table.data, static_cast<const std::int64_t*>(ids.data), shape.rows, shape.width);
}

void CpuBackend::embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) {
  constexpr const char* operation = "embedding_backward";
  const EmbeddingShape shape =
      embedding_shape(operation, ids, dtable, dout, "dout [rows, C] for ids [rows] and dtable [V, C]");
  void* links = nullptr;
  if (dtable.dtype == DType::bf16) {
    if (shape.rows > INT32_MAX) reject(operation, fmt::format("{} rows given; expected fewer than 2^31", shape.rows));
    links = scratch(static_cast<std::size_t>(shape.rows + shape.table_rows) * sizeof(std::int32_t));
  }
  if (preparing()) return;
  require_ids(operation, ids, shape.table_rows);
  if (!accumulate) fill(dtable, 0.0);
  data_kernels(isa_).embedding_backward[index_of(dtable.dtype)][index_of(dout.dtype)](
      dtable.data, dout.data, static_cast<const std::int64_t*>(ids.data), shape.rows, shape.width, shape.table_rows,
      static_cast<std::int32_t*>(links));
}

void CpuBackend::rotary_table(const Tensor& cos, const Tensor& sin, double theta) {
  require_rotary_table("rotary_table", cos, sin);
  if (preparing()) return;
  auto* const c = static_cast<float*>(cos.data);
  auto* const s = static_cast<float*>(sin.data);
  const std::int64_t positions = cos.dim(0), pairs = cos.dim(1);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(pairs));
    for (std::int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      c[t * pairs + i] = static_cast<float>(std::cos(angle));
      s[t * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void CpuBackend::rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const RotaryShape shape = rotary_shape(x, cos, sin);
  if (preparing()) return;
  data_kernels(isa_).rotary[index_of(x.dtype)](x.data, static_cast<const float*>(cos.data),
                                               static_cast<const float*>(sin.data), shape, inverse);
}

}  // namespace assay::cpu
