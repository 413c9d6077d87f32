#include "assay/comm/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/comm/exact_data.hpp"

namespace assay::comm {

using compute::Tensor;

namespace {

// f(piece of x, index of its first element)
template <class F>
void for_each_piece(const Tensor& x, F&& f) {
  for (std::int64_t first = 0; first < x.elements(); first += PeriodicData::piece)
    f(x.slice(0, first, std::min(PeriodicData::piece, x.elements() - first)), first);
}

}  // namespace

PeriodicData::PeriodicData(compute::DType dtype, const std::vector<std::int32_t>& one_period)
    : dtype_(dtype), values_(one_period), period_(static_cast<std::int64_t>(one_period.size())) {
  const std::size_t element = size_of(dtype);
  bytes_.resize(static_cast<std::size_t>(period_ + piece) * element);
  for (std::size_t i = 0; i * element < bytes_.size(); ++i) {
    const std::uint32_t bits = bits_of(dtype, values_[i % values_.size()]);
    std::memcpy(bytes_.data() + i * element, &bits, element);  // the low bytes come first
  }
}

const std::byte* PeriodicData::at(std::int64_t first) const {
  return bytes_.data() + static_cast<std::size_t>(first % period_) * size_of(dtype_);
}

void Comparison::add(const Comparison& more) {
  checked += more.checked, wrong += more.wrong;
  if (!first) first = more.first;
}

void Pieces::write(const Tensor& x, const PeriodicData& data, std::int64_t shift) const {
  for_each_piece(x, [&](const Tensor& piece, std::int64_t first) { backend_->upload(piece, data.at(first + shift)); });
}

void Pieces::spoil(const Tensor& x) const {
  const std::vector<std::byte> not_numbers(
      std::min(x.bytes(), static_cast<std::size_t>(PeriodicData::piece) * size_of(x.dtype)), std::byte{0xff});
  for_each_piece(x, [&](const Tensor& piece, std::int64_t) { backend_->upload(piece, not_numbers.data()); });
}

Comparison compare(const std::byte* got, std::int64_t count, const PeriodicData& data, std::int64_t first,
                   double tolerance) {
  Comparison result{.checked = count};
  const std::size_t element = size_of(data.dtype());
  const std::byte* expected = data.at(first);
  if (std::memcmp(got, expected, static_cast<std::size_t>(count) * element) == 0) return result;
  for (std::int64_t i = 0; i < count; ++i, got += element, expected += element) {
    if (std::memcmp(got, expected, element) == 0) continue;
    const double value = value_of(data.dtype(), got);
    const double right = data.value(first + i);
    if (tolerance > 0 && std::abs(value - right) <= tolerance) continue;
    ++result.wrong;
    if (!result.first) result.first = WrongElement{i, value, right};
  }
  return result;
}

Comparison Pieces::compare(const Tensor& x, const PeriodicData& data, std::int64_t shift, double tolerance) const {
  Comparison all;
  std::vector<std::byte> got(std::min(x.bytes(), static_cast<std::size_t>(PeriodicData::piece) * size_of(x.dtype)));
  for_each_piece(x, [&](const Tensor& piece, std::int64_t first) {
    backend_->download(got.data(), piece);
    Comparison one = comm::compare(got.data(), piece.elements(), data, first + shift, tolerance);
    if (one.first) one.first->index += first;
    all.add(one);
  });
  return all;
}

}  // namespace assay::comm
