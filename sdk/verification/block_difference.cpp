#include "assay/verification/block_difference.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <cmath>
#include <limits>

namespace assay::verification {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double relative(double distance_squares, double expected_squares, double scale) {
  if (!std::isfinite(distance_squares) || !std::isfinite(expected_squares)) return infinity;
  return distance_squares == 0 ? 0 : std::sqrt(distance_squares) / std::max(std::sqrt(expected_squares), scale);
}

}  // namespace

void BlockDifference::add(const compute::BlockSums& sums) {
  auto left = static_cast<std::size_t>(sums.elements);
  elements_ += left;
  blocks_.reserve(blocks_.size() + sums.blocks.size());
  for (const compute::BlockSums::Block& block : sums.blocks) {
    const std::size_t count = std::min(left, block_elements);
    blocks_.push_back({block.distance, block.expected, count});
    left -= count;
    along_ += block.along;
  }
}

void BlockDifference::add(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) {
    is_comparable_ = false;
    return;
  }
  for (std::size_t i = 0; i < found.size();) {
    if (blocks_.empty() || blocks_.back().elements == block_elements) blocks_.emplace_back();
    Block& block = blocks_.back();
    const std::size_t end = std::min(found.size(), i + block_elements - block.elements);
    elements_ += end - i;
    block.elements += end - i;
    for (; i < end; ++i) {
      const double d = double(found[i]) - double(expected[i]);
      block.distance += d * d;
      block.expected += double(expected[i]) * double(expected[i]);
      along_ += d * double(expected[i]);
    }
  }
}

double BlockDifference::expected_squares() const {
  double sum = 0;
  for (const Block& block : blocks_) sum += block.expected;
  return sum;
}

double BlockDifference::whole(double scale) const {
  if (!is_comparable_) return infinity;
  double distance = 0;
  for (const Block& block : blocks_) distance += block.distance;
  return relative(distance, expected_squares(), scale * std::sqrt(static_cast<double>(elements_)));
}

double BlockDifference::worst_block(double scale) const {
  if (!is_comparable_) return infinity;
  const double average =
      elements_ == 0 ? 0 : std::max(scale, std::sqrt(expected_squares() / static_cast<double>(elements_)));
  compute::Worst worst;
  for (const Block& block : blocks_)
    worst.add(relative(block.distance, block.expected, average * std::sqrt(static_cast<double>(block.elements))));
  return worst.value();
}

double BlockDifference::factor(double scale) const {
  const double squares = std::max(expected_squares(), scale * scale * static_cast<double>(elements_));
  if (!is_comparable_ || !std::isfinite(along_) || !std::isfinite(squares)) return infinity;
  return along_ == 0 ? 0 : std::abs(along_) / squares;
}

}  // namespace assay::verification
