// A product of two square matrices of integers that every device must get to the bit, and the proof that it did.
//
// The integers are so small that every sum of their products is a number of fp32, in whatever order it is made: a
// result is right to the bit, or it is wrong. All elements of a result c are checked at the cost of three products of a
// matrix and a vector (Freivalds): with random words x, c x = a (b x) modulo 2^64. A row of c with a wrong element
// passes with a probability of 2^-40 at most, since two integers below 2^24 differ in one of their lowest 24 bits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "findings.hpp"

namespace node_check {

// A well mixed word for each number (the finaliser of SplitMix64).
std::uint64_t mixed(std::uint64_t number);

// Integers of [-most, most], a function of seed and place.
class IntegerMatrix {
 public:
  IntegerMatrix(std::uint64_t seed, std::int64_t size, std::int32_t most) : seed_(seed), size_(size), most_(most) {}
  std::int64_t size() const { return size_; }
  std::int32_t at(std::int64_t row, std::int64_t column) const {
    const std::uint64_t word = mixed(seed_ + static_cast<std::uint64_t>(row * size_ + column));
    return static_cast<std::int32_t>((word >> 32) * static_cast<std::uint64_t>(2 * most_ + 1) >> 32) - most_;
  }

 private:
  std::uint64_t seed_;
  std::int64_t size_;
  std::int32_t most_;
};

// The largest integer of the factors of a product of this size. A product is also added to and subtracted from another
// one, so partial sums reach twice its bound. They stay below 2^23: half of what fp32 holds is left to units that align
// the terms of a sum with a bit less. At most 256, where bf16 ends.
std::int32_t largest_integer(std::int64_t size);

class IntegerProduct {
 public:
  IntegerProduct(std::uint64_t seed, std::int64_t size);
  const IntegerMatrix& a() const { return a_; }
  const IntegerMatrix& b() const { return b_; }

  // To be called before compare(): it takes as long as writing the matrices.
  void prepare();
  // Whole rows of the result from `first_row` on against `times` a b, where times is 0 or 1.
  Findings compare(std::span<const float> rows, std::int64_t first_row, int times);

 private:
  Findings compare_row(std::span<const float> row, std::int64_t index, int times);
  bool is_right(std::span<const float> row, std::int64_t index, int times) const;
  std::vector<std::int64_t> exact_row(std::int64_t index) const;

  IntegerMatrix a_, b_;
  std::vector<std::uint64_t> x_, abx_;
  int rows_in_detail_ = 0;  // wrong ones whose elements were counted
};

}  // namespace node_check
