#include "assay/workload/host_copies.hpp"

#include <assay/compute/sixteen_bit.hpp>
#include <cstdint>
#include <cstring>
#include <string>

namespace assay::workload {

using compute::DType;
using compute::Tensor;

std::vector<float> widened(const std::byte* bytes, DType dtype, std::size_t n) {
  std::vector<float> out(n);
  if (dtype == DType::f32) {
    std::memcpy(out.data(), bytes, n * 4);
    return out;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t h;
    std::memcpy(&h, bytes + 2 * i, 2);
    out[i] = dtype == DType::bf16 ? compute::float_of_bf16(h) : compute::float_of_fp16(h);
  }
  return out;
}

void upload_f32(compute::Backend& backend, const Tensor& t, const std::vector<float>& values) {
  if (t.dtype == DType::f32) return backend.upload(t, values.data());
  if (t.dtype != DType::bf16)
    throw Error(ASSAY_INTERNAL, std::string("numbers are to be written as ") + compute::name_of(t.dtype));
  std::vector<std::uint16_t> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) rounded[i] = compute::bf16_of_float(values[i]);
  backend.upload(t, rounded.data());
}

std::vector<float> download_f32(compute::Backend& backend, const Tensor& t) {
  std::vector<std::byte> bytes(t.bytes());
  backend.download(bytes.data(), t);
  return widened(bytes.data(), t.dtype, static_cast<std::size_t>(t.elements()));
}

}  // namespace assay::workload
