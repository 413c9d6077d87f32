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
constexpr std::initializer_list<DType> compute_float = {DType::f32, DType::bf16};

std::size_t index_of(DType t) { return static_cast<std::size_t>(t); }
bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

void require_shape(const char* operation, bool fits, const char* expected) {
  if (!fits) throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} on the CPU: expected {}", operation, expected));
}

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
  if (!preparing()) std::memcpy(to.data, host_source, to.bytes());
}

void CpuBackend::download(void* host_target, const Tensor& from) {
  require_contiguous("download", from);
  if (!preparing()) std::memcpy(host_target, from.data, from.bytes());
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
  require_same_shape("copy", to, from);
  if (to.dtype != from.dtype) {
    require_dtype("copy between types", to, any_float);
    require_dtype("copy between types", from, any_float);
  }
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
  if (low >= high)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("random_integers on the CPU: range [{}, {}) is empty; expected low < high", low, high));
  if (preparing()) return;
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  data_kernels(isa_).random_integers(static_cast<std::int64_t*>(x.data), x.elements(), seed, stream, low, range);
}

void CpuBackend::embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) {
  constexpr const char* operation = "embedding_forward";
  require_dtype(operation, ids, {DType::i64});
  require_dtype(operation, table, compute_float);
  require_dtype(operation, out, compute_float);
  for (const Tensor* t : {&ids, &table, &out}) require_contiguous(operation, *t);
  require_rank(operation, table, 2);
  const std::int64_t rows = ids.elements(), width = table.dim(1);
  require_shape(operation, out.rank > 0 && out.dim(-1) == width && out.elements() == rows * width,
                "out [rows, C] for ids [rows] and table [V, C]");
  if (preparing()) return;
  require_ids(operation, ids, table.dim(0));
  data_kernels(isa_).embedding_forward[index_of(out.dtype)][index_of(table.dtype)](
      out.data, table.data, static_cast<const std::int64_t*>(ids.data), rows, width);
}

void CpuBackend::embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) {
  constexpr const char* operation = "embedding_backward";
  require_dtype(operation, ids, {DType::i64});
  require_dtype(operation, dout, compute_float);
  require_dtype(operation, dtable, compute_float);
  for (const Tensor* t : {&ids, &dout, &dtable}) require_contiguous(operation, *t);
  require_rank(operation, dtable, 2);
  const std::int64_t rows = ids.elements(), width = dtable.dim(1), table_rows = dtable.dim(0);
  require_shape(operation, dout.rank > 0 && dout.dim(-1) == width && dout.elements() == rows * width,
                "dout [rows, C] for ids [rows] and dtable [V, C]");
  void* links = nullptr;
  if (dtable.dtype == DType::bf16) {
    if (rows > INT32_MAX) reject(operation, fmt::format("{} rows given; expected fewer than 2^31", rows));
    links = scratch(static_cast<std::size_t>(rows + table_rows) * sizeof(std::int32_t));
  }
  if (preparing()) return;
  require_ids(operation, ids, table_rows);
  if (!accumulate) fill(dtable, 0.0);
  data_kernels(isa_).embedding_backward[index_of(dtable.dtype)][index_of(dout.dtype)](
      dtable.data, dout.data, static_cast<const std::int64_t*>(ids.data), rows, width, table_rows,
      static_cast<std::int32_t*>(links));
}

void CpuBackend::rotary_table(const Tensor& cos, const Tensor& sin, double theta) {
  constexpr const char* operation = "rotary_table";
  require_rank(operation, cos, 2);
  require_same_shape(operation, cos, sin);
  for (const Tensor* t : {&cos, &sin}) {
    require_dtype(operation, *t, {DType::f32});
    require_contiguous(operation, *t);
  }
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
  constexpr const char* operation = "rotary";
  require_dtype(operation, x, compute_float);
  require_rank(operation, x, 4);
  require_rank(operation, cos, 2);
  require_same_shape(operation, cos, sin);
  for (const Tensor* t : {&cos, &sin}) {
    require_dtype(operation, *t, {DType::f32});
    require_contiguous(operation, *t);
  }
  require_shape(operation, x.dim(3) == 2 * cos.dim(1) && x.dim(1) <= cos.dim(0),
                "x [B, T, H, D] with cos and sin [at least T, D/2]");
  if (x.step(3) != 1) reject(operation, "the last dimension of x has gaps; expected adjacent elements: copy it first");
  if (preparing()) return;
  const RotaryShape shape{x.dim(0), x.dim(1), x.dim(2), cos.dim(1), x.step(0), x.step(1), x.step(2)};
  data_kernels(isa_).rotary[index_of(x.dtype)](x.data, static_cast<const float*>(cos.data),
                                               static_cast<const float*>(sin.data), shape, inverse);
}

}  // namespace assay::cpu
