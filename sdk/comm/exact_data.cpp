#include "assay/comm/exact_data.hpp"

#include <assay/compute/sixteen_bit.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace assay::comm {

using compute::DType;

namespace {

constexpr int half_mantissa_bits = 10;
constexpr int half_exponent_bias = 15;

int significant_bits(DType dtype) {
  return dtype == DType::f32 ? 24 : dtype == DType::bf16 ? 8 : half_mantissa_bits + 1;
}

std::uint32_t half_bits(std::int32_t value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<std::uint32_t>(std::abs(value));
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1;
  const std::uint32_t mantissa = (magnitude << half_mantissa_bits >> exponent) & ((1U << half_mantissa_bits) - 1);
  const auto biased = static_cast<std::uint32_t>(exponent + half_exponent_bias);
  return (value < 0 ? 0x8000U : 0U) | biased << half_mantissa_bits | mantissa;
}

// A well mixed number of rank and position (the finaliser of SplitMix64).
std::uint64_t mixed(std::int32_t rank, std::int64_t position) {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) << 32) + static_cast<std::uint64_t>(position) + 1;
  x *= 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::int32_t largest_integer(DType dtype) { return 1 << significant_bits(dtype); }

std::uint32_t bits_of(DType dtype, std::int32_t value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return dtype == DType::f32 ? bits : dtype == DType::bf16 ? bits >> 16 : half_bits(value);
}

float value_of(DType dtype, const std::byte* element) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, element, sizeof bits);
  return dtype == DType::bf16 ? compute::float_of_bf16(bits) : compute::float_of_fp16(bits);
}

ExactData::ExactData(DType dtype, Reduction reduction, std::int32_t ranks)
    : dtype_(dtype), reduction_(reduction), ranks_(ranks) {
  const std::int32_t limit = largest_integer(dtype);
  if (reduction == Reduction::max) {
    active_ = ranks, most_ = limit;
    return;
  }
  if (reduction == Reduction::average) unit_ = ranks;
  const std::int32_t largest_sum = limit / unit_;
  if (largest_sum == 0)
    throw assay::Error(ASSAY_UNSUPPORTED, std::string("there is no exact average of ") + name_of(dtype) + " over " +
                                              std::to_string(ranks) + " ranks to verify with; at most " +
                                              std::to_string(limit) + ", or use another dtype or reduction");
  active_ = std::min(ranks, largest_sum);
  most_ = largest_sum / active_;
  if (tolerance() > 0) most_ = 1;  // a small tolerance needs small values
}

std::vector<std::int32_t> ExactData::sent_by(std::int32_t rank) const {
  std::vector<std::int32_t> values(static_cast<std::size_t>(period));
  const auto span = static_cast<std::uint64_t>(2 * most_ + 1);
  for (std::int64_t i = 0; i < period; ++i)
    if ((rank + i) % ranks_ < active_)
      values[static_cast<std::size_t>(i)] = unit_ * (static_cast<std::int32_t>(mixed(rank, i) % span) - most_);
  return values;
}

std::vector<std::int32_t> ExactData::reduced() const {
  std::vector<std::int32_t> out = sent_by(0);
  for (std::int32_t rank = 1; rank < ranks_; ++rank) {
    const std::vector<std::int32_t> more = sent_by(rank);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = reduction_ == Reduction::max ? std::max(out[i], more[i]) : out[i] + more[i];
  }
  for (std::int32_t& value : out) value /= unit_;
  return out;
}

double ExactData::tolerance() const {
  if (reduction_ != Reduction::average || std::has_single_bit(static_cast<std::uint32_t>(ranks_))) return 0;
  // There are `active_` terms of magnitude 1: 1 / ranks and the product are rounded, and so is each of the sums.
  return active_ * (2.0 + active_) * std::ldexp(1.0, -significant_bits(dtype_));
}

}  // namespace assay::comm
