// A device's inspector against the one that computes on the host, and that against sums written out here.
#include <cmath>

#include "common/hash_of_word.hpp"
#include "common/host_inspector.hpp"
#include "harness.hpp"

namespace assay::conformance {
namespace {

using compute::BlockSums;
using compute::HostInspector;
using compute::Inspector;
using compute::LineWeights;

std::shared_ptr<Inspector> inspector() { return compute::inspector_of(backend()); }
HostInspector on_host() { return HostInspector(backend()); }

Values signs(std::int64_t count, std::uint64_t seed) {
  Values all;
  for (const double x : random_values(DType::f32, count, seed)) all.push_back(x < 0 ? -1 : 1);
  return all;
}

constexpr DType floats[] = {DType::f32, DType::bf16, DType::f16};

void expect_near(const Values& found, const Values& expected, double relative) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], relative * (1 + std::abs(expected[i]))) << i;
}

TEST(Inspector, ReadsEveryTypeAndAnyStrides) {
  for (const DType type :
       {DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::f8_e4m3, DType::f8_e5m2}) {
    Values values;
    const bool has_few_digits = type == DType::f8_e4m3 || type == DType::f8_e5m2;
    for (int i = 0; i < 2 * 3 * 5 * 7; ++i) values.push_back(has_few_digits ? i % 8 : i % 120);
    const Values stored = rounded(type, values);
    const DeviceTensor t(type, {2, 3, 5, 7}, stored);
    const Tensor whole = t;
    EXPECT_EQ(inspector()->read(whole), stored) << name_of(type);
    // One head of one sequence: rows that lie apart.
    const Tensor head = whole.slice(0, 1, 1).slice(2, 4, 1);
    Values expected;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 7; ++j) expected.push_back(stored[((3 + i) * 5 + 4) * 7 + j]);
    EXPECT_EQ(inspector()->read(head), expected) << name_of(type);
    const Tensor turned = whole.view({6, 35}).transposed(0, 1);
    const Values across = inspector()->read(turned, {{34, 1, 3}, {0, 0, 2}});
    EXPECT_EQ(across, (Values{stored[35 + 34], stored[70 + 34], stored[105 + 34], stored[0], stored[35]}))
        << name_of(type);
    EXPECT_EQ(on_host().read(turned), inspector()->read(turned)) << name_of(type);
  }
}

TEST(Inspector, ReadsSpansOfFloats) {
  const Values values = random_values(DType::bf16, 20'000, 3);
  for (const DType type : floats) {
    const Values stored = rounded(type, values);
    const DeviceTensor t(type, {20'000}, stored);
    const std::vector<float> found =
        inspector()->read(t, std::vector<compute::ElementSpan>{{3, 9000}, {19'999, 1}, {0, 2}});
    ASSERT_EQ(found.size(), 9003u);
    for (std::size_t i = 0; i < 9000; ++i) ASSERT_EQ(static_cast<double>(found[i]), stored[i + 3]) << name_of(type);
    EXPECT_EQ(static_cast<double>(found[9000]), stored.back());
    EXPECT_EQ(static_cast<double>(found[9002]), stored[1]);
  }
}

// The definition: over words of eight bytes, the last one filled up with zeros.
TEST(Inspector, HashesAllBitsInTheirPlaces) {
  for (const std::int64_t count : {1, 7, 8, 1000, 300'001}) {
    Values values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((i * 37 + i / 256) % 251));
    const DeviceTensor t(DType::u8, {count}, values);
    std::uint64_t expected = 0;
    for (std::int64_t word = 0; word * 8 < count; ++word) {
      std::uint64_t bits = 0;
      for (std::int64_t b = 0; b < 8 && word * 8 + b < count; ++b)
        bits |= static_cast<std::uint64_t>(values[static_cast<std::size_t>(word * 8 + b)]) << (8 * b);
      expected += compute::hash_of_word(bits, static_cast<std::uint64_t>(word));
    }
    EXPECT_EQ(inspector()->hash(t), expected) << count;
    if (count < 1000) continue;
    std::swap(values[8], values[16]);  // the same bytes in other words
    const DeviceTensor other(DType::u8, {count}, values);
    EXPECT_NE(inspector()->hash(other), expected);
  }
}

TEST(Inspector, SumsRowsAndColumnsOfMatrices) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 1000}, {777, 5}, {600, 333}})
    for (const DType type : floats) {
      const Values x = rounded(type, random_values(DType::bf16, rows * columns, 5));
      const DeviceTensor t(type, {rows, columns}, x);
      const LineWeights over_columns{signs(columns, 1), random_values(DType::f32, columns, 2)},
          over_rows{random_values(DType::f32, rows, 3), signs(rows, 4)};
      Values of_rows(static_cast<std::size_t>(rows)), row_squares(of_rows),
          of_columns(static_cast<std::size_t>(columns)), column_squares(of_columns);
      for (std::size_t r = 0; r < of_rows.size(); ++r)
        for (std::size_t c = 0; c < of_columns.size(); ++c) {
          const double value = x[r * of_columns.size() + c];
          of_rows[r] += over_columns.values[c] * value;
          row_squares[r] += over_columns.squares[c] * value * value;
          of_columns[c] += over_rows.values[r] * value;
          column_squares[c] += over_rows.squares[r] * value * value;
        }
      for (const bool turned : {false, true}) {
        const Tensor straight = t;
        const compute::MatrixSums found =
            turned ? inspector()->sum_matrix(straight.transposed(0, 1), over_rows, over_columns)
                   : inspector()->sum_matrix(straight, over_columns, over_rows);
        expect_near((turned ? found.of_columns : found.of_rows).values, of_rows, 1e-11);
        expect_near((turned ? found.of_columns : found.of_rows).squares, row_squares, 1e-11);
        expect_near((turned ? found.of_rows : found.of_columns).values, of_columns, 1e-11);
        expect_near((turned ? found.of_rows : found.of_columns).squares, column_squares, 1e-11);
      }
      const compute::MatrixSums one = inspector()->sum_matrix(t, over_columns, {});
      EXPECT_TRUE(one.of_columns.values.empty());
      expect_near(one.of_rows.values, of_rows, 1e-11);
    }
}

TEST(Inspector, SumsSpansWithWeightsThatRepeatThemselves) {
  const Values values = random_values(DType::bf16, 5000, 7);
  std::vector<float> weights;
  for (const double w : random_values(DType::bf16, 101, 8)) weights.push_back(static_cast<float>(w));
  const std::vector<compute::WeightedSpan> spans{{0, 5000, 0}, {17, 300, 99}, {4999, 1, 1000}, {5, 0, 3}};
  for (const DType type : floats) {
    const Values x = rounded(type, values);
    const DeviceTensor t(type, {5000}, x);
    const std::vector<compute::WeightedSum> found = inspector()->sum_spans(t, spans, weights);
    ASSERT_EQ(found.size(), spans.size());
    for (std::size_t s = 0; s < spans.size(); ++s) {
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < spans[s].count; ++i) {
        const double product = static_cast<double>(weights[static_cast<std::size_t>((spans[s].place + i) % 101)]) *
                               x[static_cast<std::size_t>(spans[s].first + i)];
        sum += product, squares += product * product;
      }
      EXPECT_NEAR(found[s].sum, sum, 1e-11 * (1 + std::abs(sum))) << s;
      EXPECT_NEAR(found[s].squares, squares, 1e-11 * (1 + squares)) << s;
    }
  }
}

TEST(Inspector, MultipliesInFloat64) {
  constexpr std::int64_t rows = 19, k = 83, n = 45;
  const Values x = random_values(DType::f32, rows * k, 1);
  for (const DType type : floats) {
    const Values w = rounded(type, random_values(DType::bf16, n * k, 2));
    const DeviceTensor straight(type, {n, k}, w);
    Values turned(w.size()), expected(static_cast<std::size_t>(rows * n));
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < k; ++i) turned[i * n + j] = w[j * k + i];
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < k; ++i) expected[r * n + j] += x[r * k + i] * w[j * k + i];
    const DeviceTensor across(type, {k, n}, turned);
    expect_near(inspector()->product(x, rows, straight), expected, 1e-12);
    expect_near(inspector()->product(x, rows, Tensor(across).transposed(0, 1)), expected, 1e-12);
  }
}

Values flattened(const BlockSums& sums) {
  Values all;
  for (const BlockSums::Block& b : sums.blocks) all.insert(all.end(), {b.distance, b.expected, b.along});
  return all;
}

TEST(Inspector, FindsWhereAGradientDiffersFromAProduct) {
  constexpr std::int64_t rows = 9, m = 31, n = 37;
  const Values a = random_values(DType::f32, rows * m, 1), b = random_values(DType::f32, rows * n, 2);
  Values gradient(static_cast<std::size_t>(m * n));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) gradient[i * n + j] += a[r * m + i] * b[r * n + j];
  Values scaled = gradient;
  for (double& x : scaled) x *= 1024;
  scaled[700] += 4096;
  for (const DType type : {DType::f32, DType::bf16}) {
    const DeviceTensor t(type, {m, n}, rounded(type, scaled));
    const BlockSums found = inspector()->difference_from_product(t, 0x1p-10F, a, b, rows);
    ASSERT_EQ(found.elements, m * n);
    ASSERT_EQ(found.blocks.size(), 5u);
    EXPECT_NEAR(found.blocks[2].distance, 16, 0.5) << "element 700 is off by 4";
    EXPECT_LT(found.blocks[1].distance, 0.01);
    expect_near(flattened(found), flattened(on_host().difference_from_product(t, 0x1p-10F, a, b, rows)), 1e-9);
  }
}

TEST(Inspector, FindsWhereATensorDiffersFromOneThatWasKept) {
  const Values before = random_values(DType::bf16, 40 * 50, 1);
  for (const DType type : floats) {
    const Values stored = rounded(type, before);
    const DeviceTensor t(type, {40, 50}, stored);
    for (const std::int64_t most : {std::int64_t{1} << 20, std::int64_t{100}}) {
      const auto kept = inspector()->keep(t, most);
      EXPECT_GT(kept->elements(), 0);
      Values turned(stored.size());
      for (std::size_t i = 0; i < 40; ++i)
        for (std::size_t j = 0; j < 50; ++j) turned[j * 40 + i] = stored[i * 50 + j];
      turned[49 * 40 + 39] += 1;  // the last element
      const DeviceTensor across(DType::f32, {50, 40}, turned);
      const BlockSums found = inspector()->difference(*kept, Tensor(across).transposed(0, 1));
      EXPECT_EQ(found.elements, kept->elements());
      double distance = 0;
      for (const BlockSums::Block& b : found.blocks) distance += b.distance;
      EXPECT_NEAR(distance, 1, 1e-6) << name_of(type);
      EXPECT_NEAR(found.blocks.back().distance, 1, 1e-6) << name_of(type);
    }
  }
  const auto on_its_host = on_host().keep(DeviceTensor(DType::f32, {40, 50}, before), 1 << 20);
  const DeviceTensor other(DType::f32, {40, 50}, random_values(DType::bf16, 40 * 50, 2));
  const auto kept = inspector()->keep(DeviceTensor(DType::f32, {40, 50}, before), 1 << 20);
  expect_near(flattened(inspector()->difference(*kept, other)), flattened(on_host().difference(*on_its_host, other)),
              1e-11);
}

TEST(Inspector, HasTheSameNumbersWhereWhatItKeepsIsMovedToTheHost) {
  const DeviceTensor t(DType::bf16, {40, 50}, random_values(DType::bf16, 40 * 50, 1));
  const DeviceTensor other(DType::bf16, {40, 50}, random_values(DType::bf16, 40 * 50, 2));
  const auto kept = inspector()->keep(t, 1 << 20);
  const std::int64_t elements = kept->elements();
  const Values before = flattened(inspector()->difference(*kept, other));
  kept->move_to_host();
  inspector()->release_memory();
  EXPECT_FALSE(kept->move_to_host()) << "it has moved";
  EXPECT_EQ(kept->elements(), elements);
  expect_near(flattened(inspector()->difference(*kept, other)), before, 1e-11);
  for (const BlockSums::Block& block : inspector()->difference(*kept, t).blocks) EXPECT_EQ(block.distance, 0);
  // What stays on the host of a large tensor is some of it.
  const auto some = inspector()->keep(t, 100);
  some->move_to_host();
  EXPECT_EQ(some->elements(), on_host().keep(t, 100)->elements());
  for (const BlockSums::Block& block : inspector()->difference(*some, t).blocks) EXPECT_EQ(block.distance, 0);
}

// In any order, over each other, across the parts in which a large tensor is copied, and empty.
TEST(Inspector, SumsSpansInAnyOrder) {
  const Values x = random_values(DType::f32, 5000, 7);
  const DeviceTensor t(DType::f32, {5000}, x);
  const std::vector<compute::WeightedSpan> spans{{4000, 1000, 3}, {10, 4990, 0}, {10, 5, 2}, {700, 0, 1}, {0, 1, 0}};
  const std::vector<float> weights{1, -2, 0.5F};
  const std::vector<compute::WeightedSum> found = inspector()->sum_spans(t, spans, weights);
  ASSERT_EQ(found.size(), spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    double sum = 0, squares = 0;
    for (std::int64_t e = 0; e < spans[i].count; ++e) {
      const double product = static_cast<double>(weights[static_cast<std::size_t>((spans[i].place + e) % 3)]) *
                             x[static_cast<std::size_t>(spans[i].first + e)];
      sum += product, squares += product * product;
    }
    EXPECT_NEAR(found[i].sum, sum, 1e-9) << i;
    EXPECT_NEAR(found[i].squares, squares, 1e-9) << i;
  }
}

TEST(Inspector, WhatIsNoNumberShowsInItsBlock) {
  Values values(600, 1.0);
  values[300] = NAN;
  const DeviceTensor t(DType::f32, {600}, values), ones(DType::f32, {600}, Values(600, 1.0));
  const auto kept = inspector()->keep(t, 1 << 20);
  const BlockSums found = inspector()->difference(*kept, ones);
  EXPECT_EQ(found.blocks[0].distance, 0);
  EXPECT_TRUE(std::isnan(found.blocks[1].distance));
}

}  // namespace
}  // namespace assay::conformance
