#include "assay/train/sampling.hpp"

#include <algorithm>
#include <assay/train/checkpoint.hpp>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace assay::train {

using compute::Tensor;

std::vector<float> sample(compute::Backend& backend, const Tensor& t) {
  const Tensor flat = t.view({t.elements()});
  const std::int64_t n = std::min(sample_elements, flat.elements());
  std::vector<float> values = download_f32(backend, flat.slice(0, 0, n));
  const std::vector<float> end = download_f32(backend, flat.slice(0, flat.elements() - n, n));
  values.insert(values.end(), end.begin(), end.end());
  return values;
}

Samples sample_values(compute::Backend& backend, const ParameterSet& set) {
  Samples samples;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) samples.push_back(sample(backend, set.value(id)));
  return samples;
}

Samples sample_gradients(compute::Backend& backend, const ParameterSet& set) {
  Samples samples;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) samples.push_back(sample(backend, set.gradient(id)));
  return samples;
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  double reference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = double(a[i]) - double(b[i]);
    squares += d * d;
    reference += double(b[i]) * double(b[i]);
  }
  return squares == 0 ? 0 : std::sqrt(squares / reference);
}

std::uint64_t hash_of(compute::Backend& backend, const Tensor& t) {
  constexpr std::int64_t chunk_elements = std::int64_t{1}
                                          << 24;  // the arena of a large model is more than the host has
  std::uint64_t hash = 0xcbf29ce484222325u;
  const Tensor flat = t.view({t.elements()});
  std::vector<std::byte> bytes;
  for (std::int64_t begin = 0; begin < flat.elements(); begin += chunk_elements) {
    const Tensor part = flat.slice(0, begin, std::min(chunk_elements, flat.elements() - begin));
    bytes.assign((part.bytes() + 7) / 8 * 8, std::byte{0});
    backend.download(bytes.data(), part);
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, &bytes[i], 8);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

std::string number(double x, const char* printf_format) {
  char text[32];
  std::snprintf(text, sizeof text, printf_format, x);
  return text;
}

}  // namespace assay::train
