#include "integer_product.hpp"

#include <algorithm>
#include <cmath>

namespace node_check {
namespace {

constexpr double sums_stay_below = 1 << 23;
constexpr float integers_end = 1 << 24;  // of fp32
constexpr int most_rows_in_detail = 16;  // each is a product of a vector and a matrix

// Not what a result can hold: no number, infinite, no integer, or too large for one.
bool is_impossible(float value) { return !(std::abs(value) <= integers_end) || value != std::trunc(value); }

std::vector<std::uint64_t> times_vector(const IntegerMatrix& m, const std::vector<std::uint64_t>& x) {
  std::vector<std::uint64_t> out(x.size());
  for (std::int64_t r = 0; r < m.size(); ++r) {
    std::uint64_t sum = 0;
    for (std::int64_t c = 0; c < m.size(); ++c)
      sum += static_cast<std::uint64_t>(std::int64_t{m.at(r, c)}) * x[static_cast<std::size_t>(c)];
    out[static_cast<std::size_t>(r)] = sum;
  }
  return out;
}

}  // namespace

std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::int32_t largest_integer(std::int64_t size) {
  return static_cast<std::int32_t>(std::min(256.0, std::sqrt(sums_stay_below / (2.0 * static_cast<double>(size)))));
}

IntegerProduct::IntegerProduct(std::uint64_t seed, std::int64_t size)
    : a_(mixed(seed), size, largest_integer(size)), b_(mixed(seed + 1), size, largest_integer(size)) {}

void IntegerProduct::prepare() {
  x_.resize(static_cast<std::size_t>(a_.size()));
  for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = mixed(~std::uint64_t{i});
  abx_ = times_vector(a_, times_vector(b_, x_));
}

bool IntegerProduct::is_right(std::span<const float> row, std::int64_t index, int times) const {
  std::uint64_t sum = 0;
  bool possible = true;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (is_impossible(row[i])) {
      possible = false;
      break;
    }
    sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(row[i])) * x_[i];
  }
  return possible && sum == static_cast<std::uint64_t>(times) * abx_[static_cast<std::size_t>(index)];
}

std::vector<std::int64_t> IntegerProduct::exact_row(std::int64_t index) const {
  std::vector<std::int64_t> out(x_.size());
  for (std::int64_t k = 0; k < a_.size(); ++k) {
    const std::int64_t factor = a_.at(index, k);
    for (std::int64_t c = 0; c < b_.size(); ++c) out[static_cast<std::size_t>(c)] += factor * b_.at(k, c);
  }
  return out;
}

Findings IntegerProduct::compare_row(std::span<const float> row, std::int64_t index, int times) {
  Findings found{.checked = static_cast<std::int64_t>(row.size()), .wrong = 0, .first = {}};
  if (is_right(row, index, times)) return found;
  if (rows_in_detail_++ >= most_rows_in_detail) {
    found.wrong = 1;  // at least
    return found;
  }
  const std::vector<std::int64_t> exact = times == 0 ? std::vector<std::int64_t>(row.size()) : exact_row(index);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == static_cast<float>(exact[i])) continue;
    ++found.wrong;
    if (found.first.empty())
      found.first = "row " + std::to_string(index) + ", column " + std::to_string(i) + " has " + number(row[i]) +
                    ", expected " + std::to_string(exact[i]);
  }
  if (found.wrong == 0) {  // the reference contradicts itself, which is no proof that the result is right
    found.wrong = 1;
    found.first = "row " + std::to_string(index) + " fails the check, but has no wrong element: suspect the host";
  }
  return found;
}

Findings IntegerProduct::compare(std::span<const float> rows, std::int64_t first_row, int times) {
  const std::size_t width = x_.size();
  Findings all;
  for (std::size_t r = 0; r * width < rows.size(); ++r)
    all.add(compare_row(rows.subspan(r * width, width), first_row + static_cast<std::int64_t>(r), times));
  return all;
}

}  // namespace node_check
