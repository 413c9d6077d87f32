// Moving and making data, embedding, rotary position.
#include <fmt/format.h>

#include <assay/compute/eight_bit.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cpu_backend.hpp"
#include "kernels/data.hpp"

namespace assay::cpu {
namespace {

// A workload's bad id must not read or write another tensor's memory.
void require_ids(const char* operation, const Tensor& ids, std::int64_t table_rows) {
  const auto* const first = data_of<std::int64_t>(ids);
  const auto* const bad =
      std::find_if(first, first + ids.elements(), [=](std::int64_t id) { return id < 0 || id >= table_rows; });
  if (bad == first + ids.elements()) return;
  invalid(operation, fmt::format("id {} at position {}; expected 0 <= id < {}, the rows of the table", *bad,
                                 bad - first, table_rows));
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

void CpuBackend::execute(const op::Fill& op) {
  if (preparing()) return;
  const DataKernels& kernels = data_kernels(isa_);
  if (is_float(op.x.dtype)) {
    kernels.fill_float[index_of(op.x.dtype)](op.x.data, static_cast<float>(op.value), op.x.elements());
    return;
  }
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(op.value));
  const auto width = static_cast<unsigned>(size_of(op.x.dtype));
  kernels.fill_bytes[std::countr_zero(width)](op.x.data, bits, op.x.elements());
}

void CpuBackend::execute(const op::Copy& op) {
  if (preparing() || op.to.elements() == 0) return;
  const DataKernels& kernels = data_kernels(isa_);
  const CopyShape shape = copy_shape(op.to, op.from);
  if (op.to.dtype == op.from.dtype)
    kernels.copy_bytes[std::countr_zero(static_cast<unsigned>(size_of(op.to.dtype)))](op.to.data, op.from.data, shape);
  else
    kernels.convert[index_of(op.to.dtype)][index_of(op.from.dtype)](op.to.data, op.from.data, shape);
}

void CpuBackend::execute(const op::Quantize& op) {
  if (preparing()) return;
  const bool is_e4m3 = op.y.dtype == DType::f8_e4m3;
  const compute::EightBitScale s = compute::eight_bit_scale(
      *data_of<float>(op.max_abs), is_e4m3 ? compute::E4m3::largest() : compute::E5m2::largest());
  *data_of<float>(op.inverse_scale) = s.inverse;
  data_kernels(isa_).quantize[is_e4m3 ? 0 : 1][index_of(op.x.dtype)](data_of<std::uint8_t>(op.y),
                                                                     data_of<std::uint8_t>(op.transposed), op.x.data,
                                                                     s.scale, rows_of(op.x), op.x.dim(-1));
}

void CpuBackend::execute(const op::QuantizeRows& op) {
  if (preparing()) return;
  data_kernels(isa_).quantize_rows[op.y.dtype == DType::f8_e4m3 ? 0 : 1][index_of(op.x.dtype)](
      data_of<std::uint8_t>(op.y), data_of<float>(op.inverse_scale), op.x.data, op.x.dim(0), op.x.dim(1));
}

Tensor CpuBackend::or_scratch(const Tensor& result, DType type, std::int64_t rows, std::int64_t columns) {
  if (result) return result;
  Tensor t(nullptr, type, {rows, columns});
  t.data = scratch(t.bytes());
  return t;
}

void CpuBackend::quantize(const op::EightBitRows& to, const Tensor& result) {
  if (!to || preparing()) return;
  const Tensor rows(result.data, result.dtype, {rows_of(result), result.dim(-1)});
  execute(op::QuantizeRows{.x = rows, .y = to.numbers, .inverse_scale = to.inverse_scale});
}

void CpuBackend::execute(const op::QuantizeColumns& op) {
  if (preparing()) return;
  data_kernels(isa_).quantize_columns[op.y.dtype == DType::f8_e4m3 ? 0 : 1][index_of(op.x.dtype)](
      data_of<std::uint8_t>(op.y), data_of<float>(op.inverse_scale), op.x.data, op.x.dim(0), op.x.dim(1));
}

void CpuBackend::execute(const op::TransposeEightBits& op) {
  const std::int64_t rows = op.x.dim(0);
  float* const share =
      op.scale ? static_cast<float*>(scratch(static_cast<std::size_t>(rows) * sizeof(float))) : nullptr;
  if (preparing()) return;
  if (share) {
    const auto *const scale = data_of<float>(op.scale), *const other = data_of<float>(op.other_scale);
    float largest = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      share[r] = scale[r] * other[r];
      largest = share[r] > largest || std::isnan(share[r]) ? share[r] : largest;
    }
    for (std::int64_t r = 0; r < rows; ++r) share[r] = largest == 0 ? 0 : share[r] / largest;
    *data_of<float>(op.inverse_scale) = largest;
  }
  data_kernels(isa_).transpose_eight_bits(data_of<std::uint8_t>(op.y), data_of<std::uint8_t>(op.x), share, rows,
                                          op.x.dim(1), op.y.dim(1));
}

void CpuBackend::execute(const op::RandomNormal& op) {
  if (preparing()) return;
  data_kernels(isa_).random_normal[index_of(op.x.dtype)](op.x.data, op.x.elements(), op.seed, op.stream, op.mean,
                                                         op.std);
}

void CpuBackend::execute(const op::RandomIntegers& op) {
  const std::uint64_t range = integer_range(op);
  if (preparing()) return;
  data_kernels(isa_).random_integers(data_of<std::int64_t>(op.x), op.x.elements(), op.seed, op.stream, op.low, range);
}

void CpuBackend::execute(const op::EmbeddingForward& op) {
  if (preparing()) return;
  require_ids(op.name, op.ids, op.table.dim(0));
  data_kernels(isa_).embedding_forward[index_of(op.out.dtype)][index_of(op.table.dtype)](
      op.out.data, op.table.data, data_of<std::int64_t>(op.ids), op.ids.elements(), op.table.dim(1));
}

void CpuBackend::execute(const op::EmbeddingBackward& op) {
  const std::int64_t rows = op.ids.elements(), table_rows = op.dtable.dim(0);
  std::int32_t* links = nullptr;
  if (op.dtable.dtype == DType::bf16) {
    if (rows > INT32_MAX) reject(op.name, fmt::format("{} rows given; expected fewer than 2^31", rows));
    links = static_cast<std::int32_t*>(scratch(static_cast<std::size_t>(rows + table_rows) * sizeof(std::int32_t)));
  }
  if (preparing()) return;
  require_ids(op.name, op.ids, table_rows);
  if (!op.accumulate) execute(op::Fill{.x = op.dtable, .value = 0});
  data_kernels(isa_).embedding_backward[index_of(op.dtable.dtype)][index_of(op.dout.dtype)](
      op.dtable.data, op.dout.data, data_of<std::int64_t>(op.ids), rows, op.dtable.dim(1), table_rows, links);
}

void CpuBackend::execute(const op::RotaryTable& op) {
  if (preparing()) return;
  auto* const c = data_of<float>(op.cos);
  auto* const s = data_of<float>(op.sin);
  const std::int64_t positions = op.cos.dim(0), pairs = op.cos.dim(1);
  const compute::RotaryCurve curve = compute::rotary_curve(op.theta, op.scaling, pairs);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double frequency = compute::rotary_frequency(curve, i, pairs);
    for (std::int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      c[t * pairs + i] = static_cast<float>(curve.magnitude * std::cos(angle));
      s[t * pairs + i] = static_cast<float>(curve.magnitude * std::sin(angle));
    }
  }
}

void CpuBackend::execute(const op::Rotary& op) {
  const RotaryShape shape = rotary_shape(op);
  if (preparing()) return;
  data_kernels(isa_).rotary[index_of(op.x.dtype)](op.x.data, data_of<float>(op.cos), data_of<float>(op.sin), shape,
                                                  op.inverse);
}

void CpuBackend::execute(const op::LatentKeysForward& op) {
  if (preparing()) return;
  data_kernels(isa_).latent_keys_forward[index_of(op.k.dtype)](
      op.k.data, op.nope.data, op.shared.data, data_of<float>(op.cos), data_of<float>(op.sin), latent_keys_shape(op));
}

void CpuBackend::execute(const op::LatentKeysBackward& op) {
  if (preparing()) return;
  data_kernels(isa_).latent_keys_backward[index_of(op.dk.dtype)](op.dnope.data, op.dshared.data, op.dk.data,
                                                                 data_of<float>(op.cos), data_of<float>(op.sin),
                                                                 latent_keys_shape(op));
}

}  // namespace assay::cpu
