// The two operations that keep the account of steps, against the same sums on the host.
#include <cmath>

#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::MarkColumns;

// No arithmetic is done in fp16, so that every device serves it.
constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};

struct Marked {
  DeviceTensor count{DType::i64, {1}, {0}};
  DeviceTensor marks{DType::f32, {6, MarkColumns::count}, Values(6 * MarkColumns::count, 0.0)};

  double at(std::int64_t row, std::int64_t column) const {
    return marks.read()[static_cast<std::size_t>(row * MarkColumns::count + column)];
  }
};

TEST(StepAccount, SpoiledPlacesAreNoNumbersAndAllOthersStay) {
  const Values values = random_values(DType::bf16, 1000, 1);
  const Values places{0, 7, 500, 999};
  for (const DType type : types) {
    const Values stored = rounded(type, values);
    const DeviceTensor x(type, {1000}, stored), at(DType::i64, {4}, places), loss(DType::f32, {1}, {2.5});
    run([&] { backend().run(op::SpoilPlaces{.x = x, .places = at, .loss = loss}); });
    const Values after = x.read();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool spoiled = i == 0 || i == 7 || i == 500 || i == 999;
      EXPECT_EQ(std::isnan(after[i]), spoiled) << name_of(type) << " " << i;
      if (spoiled) continue;
      EXPECT_EQ(after[i], stored[i]) << name_of(type) << " " << i;
    }
    EXPECT_TRUE(std::isnan(loss.read()[0]));
  }
}

TEST(StepAccount, EitherOfLossAndPlacesIsSpoiledAlone) {
  const DeviceTensor x(DType::f32, {4}, {1, 2, 3, 4}), places(DType::i64, {1}, {2}), loss(DType::f32, {1}, {2.5});
  run([&] { backend().run(op::SpoilPlaces{.x = x, .places = places, .loss = {}}); });
  EXPECT_TRUE(std::isnan(x.read()[2]));
  EXPECT_EQ(loss.read()[0], 2.5);
  const DeviceTensor y(DType::f32, {4}, {1, 2, 3, 4});
  run([&] { backend().run(op::SpoilPlaces{.x = {}, .places = {}, .loss = loss}); });
  EXPECT_TRUE(std::isnan(loss.read()[0]));
  EXPECT_EQ(y.read(), (Values{1, 2, 3, 4}));
}

// More places than the threads of one block, and a number that no stride of a block divides.
TEST(StepAccount, AMarkIsTheLossAndSumsOverThePlaces) {
  constexpr std::int64_t elements = 5000, count = 1013;
  const Values places = random_ids(count, 3, 0, elements);
  for (const DType type : types) {
    const Values results = rounded(type, random_values(DType::bf16, elements, 1)),
                 state = rounded(type, random_values(DType::bf16, elements, 2, 3.0));
    const DeviceTensor x(type, {elements}, results), w(type, {elements}, state), at(DType::i64, {count}, places),
        loss(DType::f32, {1}, {4.25});
    const Marked marked;
    run([&] {
      backend().run(op::MarkStep{
          .count = marked.count, .marks = marked.marks, .loss = loss, .results = x, .state = w, .places = at});
    });
    double sum = 0, magnitude = 0, of_state = 0, magnitude_of_state = 0;
    for (const double place : places) {
      const auto i = static_cast<std::size_t>(place);
      sum += results[i], magnitude += std::abs(results[i]);
      of_state += state[i], magnitude_of_state += std::abs(state[i]);
    }
    EXPECT_EQ(marked.count.read()[0], 1);
    EXPECT_EQ(marked.at(0, MarkColumns::loss), 4.25);
    // Sums of fp64 in another order, 1013 roundings of 2^-53 of the magnitude each, and one rounding to fp32 of the
    // sum.
    const auto expect_sum = [&](std::int64_t column, double expected, double of_terms) {
      EXPECT_NEAR(marked.at(0, column), expected, std::abs(expected) * 0x1p-24 + of_terms * count * 0x1p-53)
          << name_of(type) << " column " << column;
    };
    expect_sum(MarkColumns::results, sum, magnitude);
    expect_sum(MarkColumns::results_magnitude, magnitude, magnitude);
    expect_sum(MarkColumns::state, of_state, magnitude_of_state);
    expect_sum(MarkColumns::state_magnitude, magnitude_of_state, magnitude_of_state);
    for (std::int64_t column = 0; column < MarkColumns::count; ++column) EXPECT_EQ(marked.at(1, column), 0);
  }
}

TEST(StepAccount, TheSameStepLeavesTheSameBits) {
  const DeviceTensor x(DType::f32, {3000}, random_values(DType::f32, 3000, 1)),
      places(DType::i64, {900}, random_ids(900, 2, 0, 3000));
  const Marked marked;
  for (int step = 0; step < 3; ++step)
    run([&] {
      op::MarkStep mark;
      mark.count = marked.count, mark.marks = marked.marks, mark.results = x, mark.places = places;
      backend().run(mark);
    });
  EXPECT_NE(marked.at(0, MarkColumns::results), 0);
  for (const std::int64_t row : {1, 2})
    EXPECT_EQ(marked.at(row, MarkColumns::results), marked.at(0, MarkColumns::results));
}

// The first half of the rows keeps the first steps, and the second half the last ones, in turns.
TEST(StepAccount, TheFirstStepsStayAndTheLastOnesTakeTurns) {
  const DeviceTensor loss(DType::f32, {1}, {0});
  const Marked marked;
  for (int step = 0; step < 11; ++step) {
    loss.write({100.0 + step});
    run([&] {
      op::MarkStep mark;
      mark.count = marked.count, mark.marks = marked.marks, mark.loss = loss;
      backend().run(mark);
    });
  }
  EXPECT_EQ(marked.count.read()[0], 11);
  Values losses;
  for (std::int64_t row = 0; row < 6; ++row) losses.push_back(marked.at(row, MarkColumns::loss));
  EXPECT_EQ(losses, (Values{100, 101, 102, 109, 110, 108}));
  for (std::int64_t row = 0; row < 6; ++row) EXPECT_EQ(marked.at(row, MarkColumns::results), 0);
  for (const std::int64_t rows : {2, 5, 6, 1024})
    for (std::int64_t step = 0; step < 3 * rows; ++step) {
      const std::int64_t row = compute::row_of_mark(step, rows);
      EXPECT_EQ(row < rows / 2, step < rows / 2);
      EXPECT_GE(row, 0);
      EXPECT_LT(row, rows);
      if (step < rows / 2) continue;
      EXPECT_EQ(row, compute::row_of_mark(step + rows - rows / 2, rows));
    }
}

TEST(StepAccount, WhatDoesNotGoTogetherIsRefused) {
  const DeviceTensor x(DType::f32, {8}), matrix(DType::f32, {2, 4}), integers(DType::i64, {8}),
      places(DType::i64, {2}, {0, 1}), wrong_places(DType::f32, {2}), loss(DType::f32, {1}), two(DType::f32, {2});
  const Marked marked;
  const auto spoil = [&](const Tensor& of, const Tensor& at, const Tensor& l) {
    return status_of([&] { backend().run(op::SpoilPlaces{.x = of, .places = at, .loss = l}); });
  };
  EXPECT_EQ(spoil(x, places, loss), ASSAY_OK);
  EXPECT_NE(spoil(x, Tensor(), loss), ASSAY_OK) << "no places";
  EXPECT_NE(spoil(matrix, places, loss), ASSAY_OK) << "two dimensions";
  EXPECT_NE(spoil(integers, places, loss), ASSAY_OK) << "integers";
  EXPECT_NE(spoil(x, wrong_places, loss), ASSAY_OK) << "places that are no integers";
  EXPECT_NE(spoil(x, places, two), ASSAY_OK) << "a loss of two elements";

  const DeviceTensor one_row(DType::f32, {1, MarkColumns::count}), narrow(DType::f32, {6, MarkColumns::count - 1});
  const auto mark = [&](const Tensor& marks, const Tensor& results, const Tensor& state, const Tensor& at) {
    return status_of([&] {
      backend().run(op::MarkStep{
          .count = marked.count, .marks = marks, .loss = loss, .results = results, .state = state, .places = at});
    });
  };
  EXPECT_EQ(mark(marked.marks, x, Tensor(), places), ASSAY_OK);
  EXPECT_NE(mark(one_row, x, Tensor(), places), ASSAY_OK) << "one row";
  EXPECT_NE(mark(narrow, x, Tensor(), places), ASSAY_OK) << "too few columns";
  EXPECT_NE(mark(marked.marks, x, Tensor(), Tensor()), ASSAY_OK) << "no places";
  EXPECT_NE(mark(marked.marks, matrix, Tensor(), places), ASSAY_OK) << "two dimensions";
  EXPECT_NE(mark(marked.marks, x, integers, places), ASSAY_OK) << "a state of integers";
}

}  // namespace

// ---- samples
op::SpoilPlaces sample(Given& g, Kind<op::SpoilPlaces>) {
  return {.x = g.numbers({48}), .places = g.ids(5, 48), .loss = g.one(2)};
}
op::MarkStep sample(Given& g, Kind<op::MarkStep>) {
  return {.count = g.one(2, DType::i64),
          .marks = g.numbers({6, compute::MarkColumns::count}),
          .loss = g.one(2),
          .results = g.numbers({48}),
          .state = g.numbers({48}),
          .places = g.ids(5, 48)};
}

}  // namespace assay::conformance
