// Writes periodic data into large tensors and compares them with it, piece by piece: nothing on the host is as large as
// the tensor.
#pragma once
#include <assay/compute/backend.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::comm {

// The bytes of a few periods, so that a piece that begins anywhere in the period is one range of them.
class PeriodicData {
 public:
  PeriodicData(compute::DType dtype, const std::vector<std::int32_t>& one_period);

  static constexpr std::int64_t piece = 1 << 20;  // elements
  // The elements from `first` on, up to `piece` of them.
  const std::byte* at(std::int64_t first) const;
  compute::DType dtype() const { return dtype_; }
  std::int32_t value(std::int64_t index) const { return values_[static_cast<std::size_t>(index % period_)]; }

 private:
  compute::DType dtype_;
  std::vector<std::int32_t> values_;
  std::int64_t period_;
  std::vector<std::byte> bytes_;
};

struct WrongElement {
  std::int64_t index = 0;  // in the tensor
  double got = 0, expected = 0;
};

struct Comparison {
  std::int64_t checked = 0, wrong = 0;
  std::optional<WrongElement> first;
  void add(const Comparison& more);
};

// `count` elements at `got`, up to PeriodicData::piece, against data[first + i]. Wrong is what differs by more than the
// tolerance; with 0, in any bit. The index of the first wrong one counts from `got`.
Comparison compare(const std::byte* got, std::int64_t count, const PeriodicData& data, std::int64_t first,
                   double tolerance);

class Pieces {
 public:
  explicit Pieces(compute::Backend& backend) : backend_(&backend) {}

  // x[i] = data[i + shift]; one-dimensional tensors.
  void write(const compute::Tensor& x, const PeriodicData& data, std::int64_t shift = 0) const;
  // Something that no result holds: not a number in every dtype.
  void spoil(const compute::Tensor& x) const;
  // x[i] against data[i + shift].
  Comparison compare(const compute::Tensor& x, const PeriodicData& data, std::int64_t shift, double tolerance) const;

 private:
  compute::Backend* backend_;
};

}  // namespace assay::comm
