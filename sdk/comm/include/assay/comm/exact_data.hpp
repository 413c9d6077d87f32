// Data whose reduction is known to the bit, whatever the order of summation: small integers that depend on rank and
// position, so small that every partial sum is a number of the dtype.
//
// The values repeat with a period that is a prime: no piece into which a library cuts a buffer is a multiple of it, so
// that a piece in the wrong place shows.
#pragma once
#include <assay/comm/communicator.hpp>
#include <cstdint>
#include <vector>

namespace assay::comm {

// The bits of a small integer in the dtype, in the low bytes; exact up to the dtype's `largest_integer`.
std::uint32_t bits_of(compute::DType dtype, std::int32_t value);
// The value of an element that was received, whatever it is.
float value_of(compute::DType dtype, const std::byte* element);
// Up to here every integer is a number of the dtype.
std::int32_t largest_integer(compute::DType dtype);

class ExactData {
 public:
  static constexpr std::int64_t period = 65'521;

  // Throws assay::Error(UNSUPPORTED) where the dtype has no such numbers: averages in bf16 over more than 256 ranks.
  ExactData(compute::DType dtype, Reduction reduction, std::int32_t ranks);

  // One period of what a rank sends, and of what the reduction over all ranks makes of it.
  std::vector<std::int32_t> sent_by(std::int32_t rank) const;
  std::vector<std::int32_t> reduced() const;

  // A right result may be this far from reduced(): 0, except for averages over a number of ranks that is not a power of
  // two. A library may multiply each term by the rounded 1 / ranks there, instead of dividing the sum.
  double tolerance() const;

 private:
  compute::DType dtype_;
  Reduction reduction_;
  std::int32_t ranks_;
  std::int32_t unit_ = 1;    // every value is a multiple of it: the number of ranks for averages
  std::int32_t active_ = 1;  // ranks that send something other than 0 at one position
  std::int32_t most_ = 1;    // values are unit_ * [-most_, most_]
};

}  // namespace assay::comm
