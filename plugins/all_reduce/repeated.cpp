#include "repeated.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace all_reduce {

using assay::comm::Collective;
using assay::comm::Comparison;
using assay::comm::ExactData;
using assay::comm::PeriodicData;
using assay::comm::Reduction;
using assay::comm::WrongElement;
using assay::compute::DType;
using assay::compute::Tensor;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double largest_of(DType dtype) {
  if (dtype == DType::f16) return 65504;
  return dtype == DType::bf16 ? 0x1.FEp127 : double{std::numeric_limits<float>::max()};
}

// Half a unit in the last place, relative to a number: what one rounding is off by at most.
double rounding_of(DType dtype) { return 1.0 / assay::comm::largest_integer(dtype); }

// What a number rounds to that lies between the two: what is beyond the largest one is infinity.
Range in_format(double least, double most, DType dtype) {
  const double largest = largest_of(dtype), becomes_infinite = largest * (1 + rounding_of(dtype) / 2);
  const auto lowest = [&](double x) {
    if (x >= becomes_infinite) return infinity;
    return x <= -largest ? -infinity : std::min(x, largest);
  };
  return {lowest(least), -lowest(-most)};
}

Range around(double value, double error, DType dtype) {
  if (!std::isfinite(error)) return {-infinity, infinity};
  return in_format(value - error, value + error, dtype);
}

// value * ranks^times, with `roundings` on the way. In logarithms, since infinity times 0 is no number.
Range grown(double value, std::int32_t ranks, double times, double roundings, DType dtype) {
  if (value == 0) return {0, 0};
  constexpr double beyond_every_format = 600;
  const double growth = times * std::log2(static_cast<double>(ranks)), u = rounding_of(dtype);
  const auto power = [&](double error) {
    return std::exp2(std::clamp(growth + roundings * std::log2(1 + error), -beyond_every_format, beyond_every_format));
  };
  const Range magnitude = in_format(std::abs(value) * power(-u), std::abs(value) * power(u), dtype);
  return value > 0 ? magnitude : Range{-magnitude.most, -magnitude.least};
}

// A sum of numbers that are all the same is rounded in each addition, but doubling is exact.
Range after_all_reduce(const Repetition& r, const Element& e, double times) {
  const double more = times - 1, ranks = r.ranks, u = rounding_of(r.dtype);
  switch (r.reduction) {
    case Reduction::max: return {e.reduced, e.reduced};
    case Reduction::sum: return grown(e.reduced, r.ranks, more, r.ranks == 2 ? 0 : more * (ranks - 1), r.dtype);
    case Reduction::average: break;
  }
  if (r.first_tolerance == 0) return {e.reduced, e.reduced};  // every partial sum is a number of the format
  // Each one multiplies by 1 / ranks, which is rounded, rounds that, and adds up: ranks + 1 roundings.
  const double first = std::abs(e.reduced) + r.first_tolerance;
  return around(e.reduced, r.first_tolerance + first * std::expm1(more * (ranks + 1) * std::log1p(u)), r.dtype);
}

// x = reduction(own, the others' parts), which stay: own + n * others; an average goes to others / (ranks - 1).
Range after_reduce_scatter(const Repetition& r, const Element& e, double times) {
  const double ranks = r.ranks, u = rounding_of(r.dtype);
  if (r.reduction == Reduction::max) return {e.reduced, e.reduced};
  if (r.reduction == Reduction::sum) {
    const double sum = e.own + times * e.others, terms = std::abs(e.own) + times * e.magnitude;
    if (terms <= assay::comm::largest_integer(r.dtype)) return {sum, sum};
    // ranks - 1 additions each time; none has more than all terms, but for what roundings have added to them.
    const double roundings = times * (ranks - 1);
    return around(sum, roundings * u * terms * std::exp(roundings * u), r.dtype);
  }
  const double fades = std::pow(ranks, -times);
  const double average = e.others * (1 - fades) / (ranks - 1) + e.own * fades;
  // As many roundings as an average has, relative to its terms; each later one leaves 1 / ranks of an error, which
  // adds up to less than twice the last one's. Where a number becomes so small that its format has fewer digits, or
  // none, a rounding is absolute.
  const double smallest = r.dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
  const double each =
      (ranks + 1) * (u * (std::abs(e.own) + e.magnitude) / ranks * std::exp((ranks + 1) * u) + smallest);
  return around(average, 2 * each, r.dtype);
}

}  // namespace

Range after(const Repetition& r, const Element& e, std::uint64_t times) {
  if (times == 0 || r.ranks == 1) return {e.own, e.own};
  const auto n = static_cast<double>(times);
  return r.collective == Collective::all_reduce ? after_all_reduce(r, e, n) : after_reduce_scatter(r, e, n);
}

Comparison compare_repeated(assay::compute::Backend& backend, const Tensor& x, const Repetition& repetition,
                            const ExactData& exact, std::int32_t rank, std::int64_t shift, std::uint64_t times) {
  const auto period = static_cast<std::size_t>(ExactData::period);
  std::vector<Element> elements(period, {0, 0, 0, 0});
  for (std::int32_t sender = 0; sender < repetition.ranks; ++sender) {
    const std::vector<std::int32_t> sent = exact.sent_by(sender);
    for (std::size_t i = 0; i < period; ++i) {
      if (sender == rank)
        elements[i].own = sent[i];
      else
        elements[i].others += sent[i], elements[i].magnitude += std::abs(sent[i]);
    }
  }
  const std::vector<std::int32_t> reduced = exact.reduced();
  std::vector<Range> ranges(period);
  for (std::size_t i = 0; i < period; ++i) {
    elements[i].reduced = reduced[i];
    ranges[i] = after(repetition, elements[i], times);
  }

  Comparison all{.checked = x.elements()};
  const std::size_t element_bytes = size_of(x.dtype);
  std::vector<std::byte> got;
  for (std::int64_t first = 0; first < x.elements(); first += PeriodicData::piece) {
    const Tensor piece = x.slice(0, first, std::min(PeriodicData::piece, x.elements() - first));
    got.resize(piece.bytes());
    backend.download(got.data(), piece);
    for (std::int64_t i = 0; i < piece.elements(); ++i) {
      const double value =
          double{assay::comm::value_of(x.dtype, got.data() + static_cast<std::size_t>(i) * element_bytes)};
      const Range& range = ranges[static_cast<std::size_t>((first + i + shift) % ExactData::period)];
      if (range.has(value)) continue;
      ++all.wrong;
      if (!all.first) all.first = WrongElement{first + i, value, range.least};
    }
  }
  return all;
}

}  // namespace all_reduce
