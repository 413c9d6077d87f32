// How far a tensor is from the expected one: as a whole, and in its worst block. A whole tensor hides errors in a few
// of its rows: of 10,000 rows one missing row is 1% of the norm, as much as rounding to 16 bits.
#pragma once
#include <assay/compute/inspector.hpp>
#include <cstddef>
#include <vector>

namespace assay::verification {

class BlockDifference {
 public:
  static constexpr std::size_t block_elements = compute::BlockSums::block_elements;

  BlockDifference() = default;
  BlockDifference(const std::vector<float>& found, const std::vector<float>& expected) { add(found, expected); }
  explicit BlockDifference(const compute::BlockSums& sums) { add(sums); }
  // Adds the next elements. Sequences of different lengths differ by infinity.
  void add(const std::vector<float>& found, const std::vector<float>& expected);
  void add(const compute::BlockSums& sums);  // of the next elements, whose blocks begin with them

  std::size_t elements() const { return elements_; }
  double expected_squares() const;  // the sum of the squares of the expected values

  // Both are infinite where a number is not finite. `scale` is the root mean square that rounding errors are in
  // proportion to where the truth is nearly zero: compute::Difference.
  double whole(double scale = 0) const;
  // The largest of any block, relative to the block's own norm or that of a block of average elements, whichever is
  // more.
  double worst_block(double scale = 0) const;
  // The factor by which it is too large or too small as a whole: |<found - expected, expected>| relative to the norm of
  // the expected values. Rounding errors cancel in it, so it shows a factor that the other measures take for rounding.
  double factor(double scale = 0) const;

 private:
  struct Block {
    double distance = 0, expected = 0;  // sums of squares
    std::size_t elements = 0;
  };
  std::size_t elements_ = 0;
  std::vector<Block> blocks_;
  double along_ = 0;  // the sum of distance times expected value
  bool is_comparable_ = true;
};

}  // namespace assay::verification
