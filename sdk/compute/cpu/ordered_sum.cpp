// Sums in which every rounding counts: plain scalar arithmetic, in the order that was asked for. Compiled without
// contraction to fused operations (see CMakeLists.txt), and never with reordering.
//
// 16-bit types are computed in fp32 and rounded. For one addition or one product of two numbers of such a type that is
// the exact result, rounded once: fp32 has 24 bits of mantissa, and 2 * 11 + 2 are enough for the first rounding never
// to change the second.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cpu_backend.hpp"

namespace assay::cpu {
namespace {

// ---- numbers of each type, held as fp32 ----------------------------------------------------------------------------
struct Fp32 {
  using Stored = float;
  static float read(float x) { return x; }
  static float round(float x) { return x; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  static float read(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static float round(float x) {
    if (std::isnan(x)) return x;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
  }
};

struct Fp16 {
  using Stored = std::uint16_t;
  static float read(std::uint16_t bits) {
    const float sign = bits & 0x8000 ? -1.0F : 1.0F;
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                            : std::ldexp(static_cast<float>(fraction), -24));
  }
  static float round(float x) {
    const float magnitude = std::fabs(x);
    if (!(magnitude < 65520.0F)) return std::isnan(x) ? x : std::copysign(INFINITY, x);  // 65520: half way past 65504
    // With 2^13 times the number's power of two added, fp32's last place is fp16's: 2^-24 at least, the subnormals'.
    const float power =
        magnitude < 0x1p-14F ? 0x1p-14F : std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) & 0x7f800000U);
    const float shift = power * 0x1p13F;
    return std::copysign((magnitude + shift) - shift, x);
  }
};

// ---- orders --------------------------------------------------------------------------------------------------------
// What is added: term(i), in fp32; `Total` rounds each result.
template <class Total, class Term>
float sequential(const Term& term, std::int64_t begin, std::int64_t end) {
  float sum = 0.0F;
  for (std::int64_t i = begin; i < end; ++i) sum = Total::round(sum + term(i));
  return sum;
}

template <class Total, class Term>
float chunked(const Term& term, std::int64_t count, std::int64_t chunk) {
  float sum = 0.0F;
  for (std::int64_t begin = 0; begin < count; begin += chunk)
    sum = Total::round(sum + sequential<Total>(term, begin, std::min(count, begin + chunk)));
  return sum;
}

template <class Total, class Term>
float pairwise(const Term& term, std::int64_t begin, std::int64_t count) {
  if (count == 1) return Total::round(term(begin));
  const std::int64_t half = count / 2;
  return Total::round(pairwise<Total>(term, begin, half) + pairwise<Total>(term, begin + half, count - half));
}

template <class Total, class Term>
float compensated(const Term& term, std::int64_t count) {
  float sum = 0.0F, lost = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) {
    const float y = Total::round(term(i) - lost);
    const float next = Total::round(sum + y);
    lost = Total::round(Total::round(next - sum) - y);
    sum = next;
  }
  return sum;
}

// Cascade states the rule.
template <class Total, class Term>
float cascade(const Term& term, std::int64_t count, std::int64_t lanes) {
  const Cascade c(count, lanes);
  std::array<float, Cascade::rows_of_lanes * Cascade::most_lanes> sums{};
  for (std::int64_t column = 0; column < c.columns(); ++column) {
    std::array<float, Cascade::levels> level{};
    for (std::int64_t row = 0; row < c.rows;) {
      level[0] = Total::round(level[0] + term(row * c.columns() + column));
      ++row;
      for (std::size_t k = 1; k < level.size() && row % (std::int64_t{1} << (c.power * std::int64_t(k))) == 0; ++k) {
        level[k] = Total::round(level[k] + level[k - 1]);
        level[k - 1] = 0.0F;
      }
    }
    for (std::size_t k = 1; k < level.size(); ++k) level[0] = Total::round(level[0] + level[k]);
    sums[std::size_t(column)] = level[0];
  }
  const std::int64_t vectors_end = count / c.lanes * c.lanes;
  for (std::int64_t i = c.rows * c.columns(); i < vectors_end; ++i) {
    float& sum = sums[std::size_t(i % c.lanes)];
    sum = Total::round(sum + term(i));
  }
  for (std::int64_t column = c.lanes; column < c.columns(); ++column) {
    float& sum = sums[std::size_t(column % c.lanes)];
    sum = Total::round(sum + sums[std::size_t(column)]);
  }
  float sum = sequential<Total>(term, vectors_end, count);
  for (std::int64_t lane = 0; lane < c.lanes; ++lane) sum = Total::round(sum + sums[std::size_t(lane)]);
  return sum;
}

template <class Total, class Term>
float in_order(const Term& term, std::int64_t count, const SumOptions& options) {
  switch (options.order) {
    case SumOrder::sequential: return sequential<Total>(term, 0, count);
    case SumOrder::chunked: return chunked<Total>(term, count, options.chunk);
    case SumOrder::pairwise: return count == 0 ? 0.0F : pairwise<Total>(term, 0, count);
    case SumOrder::compensated: return compensated<Total>(term, count);
    case SumOrder::cascade: return cascade<Total>(term, count, options.lanes);
  }
  return NAN;
}

// call(T{}) with the numbers of a checked type.
template <class Call>
float with_numbers(DType type, Call call) {
  if (type == DType::bf16) return call(Bf16{});
  return type == DType::f16 ? call(Fp16{}) : call(Fp32{});
}

template <class Source>
auto elements_of(const Tensor& x) {
  return [p = static_cast<const typename Source::Stored*>(x.data)](std::int64_t i) { return Source::read(p[i]); };
}

}  // namespace

void CpuBackend::execute(const op::OrderedSum& op) {
  if (preparing()) return;
  *static_cast<float*>(op.out.data) = with_numbers(op.x.dtype, [&](auto source) {
    return with_numbers(op.options.accumulator, [&](auto total) {
      using Total = decltype(total);
      const auto term = elements_of<decltype(source)>(op.x);
      const auto converted = [&](std::int64_t i) { return Total::round(term(i)); };
      return op.options.upcast_terms ? in_order<Total>(converted, op.x.elements(), op.options)
                                     : in_order<Total>(term, op.x.elements(), op.options);
    });
  });
}

void CpuBackend::execute(const op::OrderedDot& op) {
  if (preparing()) return;
  *static_cast<float*>(op.out.data) = with_numbers(op.x.dtype, [&](auto source) {
    return with_numbers(op.options.accumulator, [&](auto total) {
      using Total = decltype(total);
      const auto a = elements_of<decltype(source)>(op.x), b = elements_of<decltype(source)>(op.y);
      const auto product = [&](std::int64_t i) { return Total::round(a(i) * b(i)); };
      const auto converted = [&](std::int64_t i) { return Total::round(Total::round(a(i)) * Total::round(b(i))); };
      return op.options.upcast_terms ? in_order<Total>(converted, op.x.elements(), op.options)
                                     : in_order<Total>(product, op.x.elements(), op.options);
    });
  });
}

}  // namespace assay::cpu
