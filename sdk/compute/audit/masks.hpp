// Random numbers and masks of dropout on the host, by the numbering that backends share: Philox 4x32-10 (Salmon,
// Moraes, Dror, Shaw 2011), whose key is the seed and whose counter is (block, stream), low words first.
#pragma once
#include <assay/compute/backend.hpp>

#include <array>
#include <cmath>
#include <cstdint>

#include "reading.hpp"

namespace assay::compute::audit {

inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::array<std::uint32_t, 4> c{low(block), high(block), low(stream), high(stream)};
  std::uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c[0], p1 = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// What each element is multiplied by: 0, or 1 / (1 - probability).
class Mask {
 public:
  // Reads the step. Blocks.
  Mask(Backend& backend, const Dropout& d) : drops_(d.probability > 0) {
    if (!drops_) return;
    const auto step = static_cast<std::uint64_t>(read_integers(backend, d.step).front());
    const std::array<std::uint32_t, 4> word = philox(d.seed, d.stream, step);
    seed_ = word[0] | std::uint64_t{word[1]} << 32;
    stream_ = word[2] | std::uint64_t{word[3]} << 32;
    drop_below_ = static_cast<std::uint32_t>(std::llround(static_cast<double>(d.probability) * 0x1p32));
    factor_ = 1 / (1 - static_cast<double>(d.probability));
  }
  // x after dropout: 0 where it is dropped, whatever it is.
  double through(std::int64_t element, double x) const {
    const double factor = (*this)(element);
    return factor == 0 ? 0 : x * factor;
  }
  double operator()(std::int64_t element) const {
    if (!drops_) return 1;
    const auto i = static_cast<std::uint64_t>(element);
    return philox(seed_, stream_, i / 4)[i % 4] < drop_below_ ? 0 : factor_;
  }

 private:
  bool drops_;
  std::uint64_t seed_ = 0, stream_ = 0;
  std::uint32_t drop_below_ = 0;
  double factor_ = 1;
};

}  // namespace assay::compute::audit
