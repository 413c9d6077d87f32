// Products by groups of rows, and the gradients of their matrices: groups of any number of rows, none included.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "expert_values.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

const double nan = std::numeric_limits<double>::quiet_NaN();

// Rows of each group, and rows behind the last one that belong to none.
struct Groups {
  std::vector<std::int64_t> rows;
  std::int64_t spare = 0;

  std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
  std::int64_t used() const { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }
  std::int64_t all() const { return used() + spare; }
  Values offsets() const {
    Values offsets{0};
    for (const std::int64_t r : rows) offsets.push_back(offsets.back() + static_cast<double>(r));
    return offsets;
  }
};

// Around the tiles of GPUs, and the pieces of CPUs.
const Groups layouts[] = {{{1}},
                          {{300}, 20},
                          {{0, 1, 63, 64, 65, 0, 127, 129, 300, 0}, 37},
                          {{0, 0, 0}, 5},
                          {{0, 0, 0}, 0},
                          {{3, 5, 7, 17, 33, 40, 2, 1, 100}},
                          {{0, 1100, 2, 0}, 1}};

struct Width {
  std::int64_t inner, outer;  // K, Q
};
const Width widths[] = {{72, 136}, {264, 72}, {8, 264}, {33, 17}, {1, 5}};

// Matrix units read rows at multiples of 16 bytes: a GPU may refuse a width that is no multiple of 8.
bool may_be_refused(const Width& w) { return is_cuda() && (w.inner % 8 != 0 || w.outer % 8 != 0); }

// Runs it; whether it was served.
bool is_served(const Width& w, const std::function<void()>& call) {
  std::string text;
  const assay_status status = status_of([&] { run(call); }, &text);
  if (may_be_refused(w) && status == ASSAY_UNSUPPORTED) return false;
  EXPECT_EQ(status, ASSAY_OK) << text;
  return status == ASSAY_OK;
}

std::string text_of(const Groups& groups, const Width& w) {
  return std::to_string(groups.count()) + " groups of " + std::to_string(groups.used()) + " rows, " +
         std::to_string(w.inner) + " to " + std::to_string(w.outer);
}

// Sums of fp32, and the rounding of the result.
double tolerance(DType type, std::int64_t terms) {
  return tolerance_of(type, 5e-7 * std::sqrt(static_cast<double>(terms)) + 1e-6);
}

// The spare rows of a tensor of [all rows, width] hold what nothing may read.
Values with_spare_rows(Values values, const Groups& groups, std::int64_t width, double spare) {
  std::fill(values.begin() + groups.used() * width, values.end(), spare);
  return values;
}

// ---- c = a b -------------------------------------------------------------------------------------------------------

Values products(const Values& a, const Values& b, const Values& bias, const Groups& groups, const Width& w,
                bool transpose_b) {
  Values c(at(groups.used() * w.outer));
  std::int64_t r = 0;
  for (std::int64_t e = 0; e < groups.count(); ++e)
    for (std::int64_t i = 0; i < groups.rows[at(e)]; ++i, ++r)
      for (std::int64_t q = 0; q < w.outer; ++q) {
        double sum = bias.empty() ? 0 : bias[at(e * w.outer + q)];
        const double* const matrix = b.data() + e * w.outer * w.inner;
        for (std::int64_t k = 0; k < w.inner; ++k)
          sum += a[at(r * w.inner + k)] * matrix[transpose_b ? q * w.inner + k : k * w.outer + q];
        c[at(r * w.outer + q)] = sum;
      }
  return c;
}

void check_product(DType t, const Groups& groups, const Width& w, bool transpose_b, bool with_bias) {
  SCOPED_TRACE(text_of(groups, w) + (transpose_b ? ", transposed" : "") + (with_bias ? ", bias" : ""));
  const std::int64_t rows = groups.all(), matrices = groups.count() * w.inner * w.outer;
  const Values left = with_spare_rows(random_values(t, rows * w.inner, 1), groups, w.inner, nan);
  const Values right = random_values(t, matrices, 2), added = random_values(t, groups.count() * w.outer, 3);
  const Shape of_b = transpose_b ? Shape{groups.count(), w.outer, w.inner} : Shape{groups.count(), w.inner, w.outer};
  const DeviceTensor a(t, {rows, w.inner}, left), b(t, of_b, right), c(t, {rows, w.outer});
  const DeviceTensor bias(t, {groups.count(), w.outer}, added),
      offsets(DType::i32, {groups.count() + 1}, groups.offsets());
  const auto product = [&] {
    backend().run(op::GroupedMatmul{.a = a,
                                    .b = b,
                                    .offsets = offsets,
                                    .c = c,
                                    .transpose_b = transpose_b,
                                    .bias = with_bias ? bias.tensor() : Tensor()});
  };
  if (!is_served(w, product)) return;
  const Values expected = products(left, right, with_bias ? added : Values(), groups, w, transpose_b);
  const auto found = [&] {
    Values values = c.read();
    values.resize(expected.size());
    return values;
  };
  const Values once = found();
  if (!expected.empty()) check("grouped_matmul", t, once, expected, tolerance(t, w.inner));
  run(product);
  EXPECT_EQ(found(), once) << "the second time";
}

TEST(GroupedMatmul, MultipliesEachGroupByItsMatrix) {
  for (const DType t : float_types())
    for (const Groups& groups : layouts)
      for (const Width& w : widths)
        for (const bool transpose_b : {true, false})
          check_product(t, groups, w, transpose_b, (groups.count() + w.inner) % 2 == 0);
}

// A step that is captured takes any routing: what was prepared serves all of them.
TEST(GroupedMatmul, WhatWasPreparedOnceServesAnyOffsets) {
  const Width w{72, 136};
  const std::int64_t rows = 400;
  for (const DType t : float_types()) {
    const Values left = random_values(t, rows * w.inner, 4), right = random_values(t, 4 * w.inner * w.outer, 5);
    const DeviceTensor a(t, {rows, w.inner}, left), b(t, {4, w.outer, w.inner}, right), c(t, {rows, w.outer});
    const DeviceTensor offsets(DType::i32, {5}, Values(5));
    const auto product = [&] {
      backend().run(op::GroupedMatmul{.a = a, .b = b, .offsets = offsets, .c = c, .transpose_b = true});
    };
    backend().set_mode(Mode::prepare);
    product();
    backend().set_mode(Mode::execute);
    const Buffer space(backend().workspace_bytes());
    backend().set_workspace(space.data(), backend().workspace_bytes());
    for (const Groups& groups : {Groups{{400, 0, 0, 0}}, Groups{{1, 399, 0, 0}}, Groups{{0, 0, 0, 3}},
                                 Groups{{100, 100, 100, 100}}, Groups{{13, 77, 201, 109}}, Groups{{0, 0, 0, 0}}}) {
      SCOPED_TRACE(text_of(groups, w));
      offsets.write(groups.offsets());
      product();
      backend().synchronize();
      const Values expected = products(left, right, {}, groups, w, true);
      Values found = c.read();
      found.resize(expected.size());
      if (!expected.empty()) check("grouped_matmul", t, found, expected, tolerance(t, w.inner));
    }
    backend().set_workspace(nullptr, 0);
  }
}

// What follows a product may read whole tensors: rows of no group must not become NaN where they were numbers.
TEST(GroupedMatmul, LeavesNumbersInRowsOfNoGroup) {
  const Groups groups{{1, 70, 0}, 200};
  const Width w{72, 136};
  for (const DType t : float_types()) {
    const DeviceTensor a(t, {groups.all(), w.inner}, random_values(t, groups.all() * w.inner, 6));
    const DeviceTensor b(t, {3, w.outer, w.inner}, random_values(t, 3 * w.inner * w.outer, 7));
    const DeviceTensor c(t, {groups.all(), w.outer}, Values(at(groups.all() * w.outer), 2.0));
    const DeviceTensor offsets(DType::i32, {4}, groups.offsets());
    run([&] { backend().run(op::GroupedMatmul{.a = a, .b = b, .offsets = offsets, .c = c, .transpose_b = true}); });
    for (const double x : c.read()) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(GroupedMatmul, RefusesWhatDoesNotGoTogether) {
  const DeviceTensor a(DType::f32, {4, 8}, Values(32)), b(DType::f32, {2, 16, 8}, Values(256)), c(DType::f32, {4, 16});
  const DeviceTensor offsets(DType::i32, {3}, {0, 2, 4}), few(DType::i32, {2}, {0, 4}),
      wide(DType::i64, {3}, {0, 2, 4});
  const DeviceTensor narrow(DType::bf16, {4, 16}), bias(DType::f32, {16}, Values(16));
  const op::GroupedMatmul right{.a = a, .b = b, .offsets = offsets, .c = c, .transpose_b = true};
  const auto status = [](const op::GroupedMatmul& operation) { return status_of([&] { backend().run(operation); }); };
  op::GroupedMatmul wrong = right;
  wrong.transpose_b = false;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "another inner dimension";
  wrong = right, wrong.offsets = few;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "too few offsets";
  wrong = right, wrong.offsets = wide;
  EXPECT_EQ(status(wrong), ASSAY_UNSUPPORTED) << "offsets as int64";
  wrong = right, wrong.c = narrow;
  EXPECT_EQ(status(wrong), ASSAY_UNSUPPORTED) << "c of another type";
  wrong = right, wrong.bias = bias;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "one bias for all groups";
}

// A device that reads host memory says which offset is bad.
TEST(GroupedMatmul, BadOffsetsAreRefusedOnTheCpu) {
  if (is_cuda()) GTEST_SKIP() << "offsets lie in the device's memory";
  const DeviceTensor a(DType::f32, {4, 8}, Values(32)), b(DType::f32, {2, 16, 8}, Values(256)), c(DType::f32, {4, 16});
  for (const Values& offsets : {Values{0, 2, 5}, Values{1, 2, 4}, Values{0, 3, 2}}) {
    const DeviceTensor bad(DType::i32, {3}, offsets);
    EXPECT_EQ(
        status_of([&] {
          run([&] { backend().run(op::GroupedMatmul{.a = a, .b = b, .offsets = bad, .c = c, .transpose_b = true}); });
        }),
        ASSAY_INVALID_ARGUMENT);
  }
}

// ---- dw = dy' x ----------------------------------------------------------------------------------------------------

struct Gradients {
  Values dw, dbias;
};
Gradients gradients(const Values& dy, const Values& x, const Values& dw, const Values& dbias, const Groups& groups,
                    const Width& w) {
  Gradients sums{dw, dbias};
  std::int64_t r = 0;
  for (std::int64_t e = 0; e < groups.count(); ++e)
    for (std::int64_t i = 0; i < groups.rows[at(e)]; ++i, ++r)
      for (std::int64_t q = 0; q < w.outer; ++q) {
        const double gradient = dy[at(r * w.outer + q)];
        sums.dbias[at(e * w.outer + q)] += gradient;
        double* const row = sums.dw.data() + (e * w.outer + q) * w.inner;
        for (std::int64_t k = 0; k < w.inner; ++k) row[k] += gradient * x[at(r * w.inner + k)];
      }
  return sums;
}

void check_gradient(DType t, DType of_dw, const Groups& groups, const Width& w, bool accumulate, bool with_bias) {
  SCOPED_TRACE(text_of(groups, w) + " into " + name_of(of_dw) + (accumulate ? ", added" : "") +
               (with_bias ? ", bias" : ""));
  const std::int64_t rows = groups.all(), matrices = groups.count() * w.inner * w.outer;
  const Values of_rows = with_spare_rows(random_values(t, rows * w.outer, 8), groups, w.outer, nan);
  const Values inputs = with_spare_rows(random_values(t, rows * w.inner, 9), groups, w.inner, nan);
  const Values old = accumulate ? random_values(of_dw, matrices, 10) : Values(at(matrices));
  const Values old_bias =
      accumulate ? random_values(of_dw, groups.count() * w.outer, 11) : Values(at(groups.count() * w.outer));
  const DeviceTensor dy(t, {rows, w.outer}, of_rows), x(t, {rows, w.inner}, inputs);
  const DeviceTensor dw(of_dw, {groups.count(), w.outer, w.inner}), dbias(of_dw, {groups.count(), w.outer});
  const DeviceTensor offsets(DType::i32, {groups.count() + 1}, groups.offsets());
  const auto gradient = [&] {
    backend().run(op::GroupedWeightGradient{.dy = dy,
                                            .x = x,
                                            .offsets = offsets,
                                            .dw = dw,
                                            .dbias = with_bias ? dbias.tensor() : Tensor(),
                                            .accumulate = accumulate});
  };
  const auto again = [&] {
    if (accumulate) dw.write(old), dbias.write(old_bias);
  };
  again();
  if (!is_served(w, gradient)) return;
  // What run() does while preparing leaves the sums as they were.
  const Gradients expected = gradients(of_rows, inputs, old, old_bias, groups, w);
  const Values once = dw.read(), bias_once = dbias.read();
  const double allowed = tolerance(of_dw, 1200);
  check("grouped_weight_gradient", t, once, expected.dw, allowed);
  if (with_bias) check("grouped_weight_gradient dbias", t, bias_once, expected.dbias, allowed);
  for (std::int64_t e = 0; e < groups.count(); ++e) {
    if (groups.rows[at(e)] > 0) continue;
    for (std::int64_t i = 0; i < w.inner * w.outer; ++i)
      ASSERT_EQ(once[at(e * w.inner * w.outer + i)], old[at(e * w.inner * w.outer + i)]) << "an empty group";
  }
  again();
  run(gradient);
  EXPECT_EQ(dw.read(), once) << "the second time";
  if (with_bias) {
    EXPECT_EQ(dbias.read(), bias_once);
  }
}

TEST(GroupedWeightGradient, SumsOverTheRowsOfEachGroup) {
  for (const DType t : float_types())
    for (const DType of_dw : std::set{t, DType::f32}) {
      for (const Groups& groups : layouts)
        for (const Width& w : widths) check_gradient(t, of_dw, groups, w, (groups.count() + w.outer) % 2 == 0, true);
    }
  check_gradient(DType::f32, DType::f32, layouts[2], widths[0], false, false);
  check_gradient(DType::bf16, DType::bf16, layouts[2], widths[0], true, false);
}

// ---- and the update of the matrices
// ----------------------------------------------------------------------------------

struct UpdateTypes {
  DType rows, gradient, parameter, moments;
  bool has_copy = false;
};

void check_update(const UpdateTypes& t, const Groups& groups, const Width& w, bool accumulate) {
  SCOPED_TRACE(text_of(groups, w) + " of " + name_of(t.rows) + ", parameters of " + name_of(t.parameter));
  const std::int64_t rows = groups.all(), matrices = groups.count() * w.inner * w.outer;
  const Shape shape{groups.count(), w.outer, w.inner};
  const DeviceTensor dy(t.rows, {rows, w.outer}, random_values(t.rows, rows * w.outer, 14));
  const DeviceTensor x(t.rows, {rows, w.inner}, random_values(t.rows, rows * w.inner, 15));
  const DeviceTensor offsets(DType::i32, {groups.count() + 1}, groups.offsets());
  const DeviceTensor step(DType::i64, {1}, {3}), lr(DType::f32, {1}, {0.015625});
  const Values old = random_values(t.gradient, matrices, 16), start = random_values(t.parameter, matrices, 17);
  const Values first = random_values(t.moments, matrices, 18);
  Values second = random_values(t.moments, matrices, 19);
  for (double& v : second) v = std::abs(v);
  struct Result {
    Values gradient, parameter, first, second, copy;
  };
  // hidden, shown: without memory for the gradient in the operation, and then at the place that memory holds.
  enum class How { apart, at_once, hidden, shown };
  const auto result = [&](How how) -> std::optional<Result> {
    const DeviceTensor dw(t.gradient, shape, old), parameter(t.parameter, shape, start), m(t.moments, shape, first),
        v(t.moments, shape, second), copy(DType::bf16, shape), place(DType::i64, {1}, {0});
    op::GroupedWeightGradient gradient{.dy = dy, .x = x, .offsets = offsets, .dw = dw, .accumulate = accumulate};
    if (how == How::apart) run([&] { backend().run(gradient); });
    gradient.update = {.parameter = parameter, .m = m, .v = v, .step = step, .lr = lr};
    gradient.update.options = {.beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .weight_decay = 0.1F};
    if (t.has_copy) gradient.update.compute_copy = copy;
    if (how == How::hidden || how == How::shown) {
      const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dw.tensor().data));
      if (how == How::shown) backend().upload(place, &address);
      gradient.update.gradient_place = place;
      gradient.dw.data = nullptr;
    }
    const auto call = [&] {
      if (how != How::apart) return backend().run(gradient);
      backend().run(op::adamw_of(gradient));
    };
    if (!is_served(w, call)) return std::nullopt;
    return Result{dw.read(), parameter.read(), m.read(), v.read(), t.has_copy ? copy.read() : Values()};
  };
  const std::optional<Result> at_once = result(How::at_once);
  if (!at_once) return;
  const Result apart = *result(How::apart);
  if (!accumulate) {
    const Result hidden = *result(How::hidden), shown = *result(How::shown);
    EXPECT_EQ(hidden.gradient, old);
    EXPECT_EQ(shown.gradient, apart.gradient);
    EXPECT_EQ(hidden.parameter, at_once->parameter);
    EXPECT_EQ(shown.parameter, at_once->parameter);
    EXPECT_EQ(hidden.second, at_once->second);
  }
  EXPECT_EQ(at_once->gradient, apart.gradient);
  // One kernel may contract an expression that two do not: then a number near a tie is rounded the other way.
  check("parameter", t.parameter, at_once->parameter, apart.parameter, tolerance_of(t.parameter, 1e-6, 0.0079));
  check("m", t.moments, at_once->first, apart.first, tolerance_of(t.moments, 1e-6, 0.0079));
  check("v", t.moments, at_once->second, apart.second, tolerance_of(t.moments, 1e-6, 0.0079));
  std::size_t others = 0;
  for (std::size_t i = 0; i < start.size(); ++i) others += at_once->parameter[i] != apart.parameter[i] ? 1 : 0;
  EXPECT_LE(others, start.size() / 20);
  if (t.has_copy) {
    EXPECT_EQ(at_once->copy, rounded(DType::bf16, at_once->parameter));
  }
}

TEST(GroupedWeightGradient, UpdatesTheMatricesOfAllGroups) {
  const UpdateTypes types[] = {{DType::f32, DType::f32, DType::f32, DType::f32},
                               {DType::bf16, DType::bf16, DType::bf16, DType::bf16},
                               {DType::bf16, DType::bf16, DType::f32, DType::f32, true}};
  for (const UpdateTypes& t : types)
    for (const Groups& groups : layouts)
      for (const Width& w : widths) check_update(t, groups, w, (groups.count() + w.inner) % 2 == 0);
}

TEST(GroupedWeightGradient, RefusesAnUpdateThatIsNotWhole) {
  const DeviceTensor dy(DType::f32, {4, 16}, Values(64)), x(DType::f32, {4, 8}, Values(32)), dw(DType::f32, {2, 16, 8});
  const DeviceTensor offsets(DType::i32, {3}, {0, 2, 4}), matrix(DType::f32, {2, 16, 8}), m(DType::f32, {2, 16, 8}),
      v(DType::f32, {2, 16, 8}), turned(DType::f32, {2, 8, 16}), step(DType::i64, {1}, {1}), lr(DType::f32, {1}, {0.1});
  op::GroupedWeightGradient right{.dy = dy, .x = x, .offsets = offsets, .dw = dw};
  right.update = {.parameter = matrix, .m = m, .v = v, .step = step, .lr = lr};
  const auto status = [](const auto& operation) { return status_of([&] { backend().run(operation); }); };
  op::GroupedWeightGradient wrong = right;
  wrong.update.parameter = turned;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "parameter as its transpose";
  wrong = right, wrong.update.parameter = {};
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "moments without a parameter";
  wrong = right, wrong.update.v = {};
  EXPECT_NE(status(wrong), ASSAY_OK) << "no second moment";
  wrong = right, wrong.update.step = {};
  EXPECT_NE(status(wrong), ASSAY_OK) << "no step number";
  wrong = right, wrong.dw.data = nullptr;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "no memory for the gradient, and no place";
  const DeviceTensor place(DType::i64, {1}, {0});
  wrong.update.gradient_place = place, wrong.accumulate = true;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "added to what has no memory";
  wrong = right, wrong.update.gradient_place = place;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "memory and a place";
}

TEST(GroupedWeightGradient, RefusesWhatDoesNotGoTogether) {
  const DeviceTensor dy(DType::f32, {4, 16}, Values(64)), x(DType::f32, {4, 8}, Values(32)), dw(DType::f32, {2, 16, 8});
  const DeviceTensor offsets(DType::i32, {3}, {0, 2, 4}), dbias(DType::bf16, {2, 16}), turned(DType::f32, {2, 8, 16});
  const DeviceTensor more(DType::f32, {5, 8}, Values(40));
  const op::GroupedWeightGradient right{.dy = dy, .x = x, .offsets = offsets, .dw = dw};
  const auto status = [](const auto& operation) { return status_of([&] { backend().run(operation); }); };
  op::GroupedWeightGradient wrong = right;
  wrong.dbias = dbias;
  EXPECT_EQ(status(wrong), ASSAY_UNSUPPORTED) << "dbias of another type";
  wrong = right, wrong.dw = turned;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "dw as its transpose";
  wrong = right, wrong.x = more;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "more rows of x";
}

// ---- both ----------------------------------------------------------------------------------------------------------

// Of the backend's own there is none; what oneDNN makes on each call is a handful for each product (test_matmul.cpp),
// and a group has three at most of so few rows.
TEST(GroupedProducts, AllocateNothingOfTheirOwnInASecondExecution) {
  if (is_cuda()) GTEST_SKIP() << "what the driver allocates is its own";
  const Groups groups{{0, 1, 63, 300, 40}, 3};
  const Width w{72, 136};
  for (const DType t : {DType::f32, DType::bf16}) {
    const DeviceTensor a(t, {groups.all(), w.inner}, random_values(t, groups.all() * w.inner, 12));
    const DeviceTensor b(t, {5, w.outer, w.inner}, random_values(t, 5 * w.inner * w.outer, 13));
    const DeviceTensor c(t, {groups.all(), w.outer}), dw(t, {5, w.outer, w.inner});
    const DeviceTensor offsets(DType::i32, {6}, groups.offsets());
    const auto products = [&] {
      backend().run(op::GroupedMatmul{.a = a, .b = b, .offsets = offsets, .c = c, .transpose_b = true});
      backend().run(op::GroupedWeightGradient{.dy = c, .x = a, .offsets = offsets, .dw = dw});
    };
    const auto one = [&] {
      backend().run(op::Matmul{.a = a, .b = b->slice(0, 0, 1).view({w.outer, w.inner}), .c = c, .transpose_b = true});
    };
    EXPECT_LE(allocations_in_second(products), 2 * 4 * 3 * (allocations_in_second(one) + 8)) << name_of(t);
  }
}

}  // namespace

// ---- samples: 3 experts, of which the first has no row
op::GroupedMatmul sample(Given& g, Kind<op::GroupedMatmul>) {
  return {.a = g.numbers({6, 8}),
          .b = g.numbers({3, 16, 8}),
          .offsets = g.whole({4}, {0, 0, 2, 6}),
          .c = g.room({6, 16}),
          .transpose_b = true,
          .bias = g.numbers({3, 16})};
}
op::GroupedWeightGradient sample(Given& g, Kind<op::GroupedWeightGradient>) {
  return {.dy = g.numbers({6, 16}),
          .x = g.numbers({6, 8}),
          .offsets = g.whole({4}, {0, 0, 2, 6}),
          .dw = g.room({3, 16, 8}),
          .dbias = g.room({3, 16}),
          .update = {.parameter = g.numbers({3, 16, 8}),
                     .m = g.numbers({3, 16, 8}),
                     .v = g.positive({3, 16, 8}),
                     .step = g.one(3, DType::i64),
                     .lr = g.one(0.5)}};
}

}  // namespace assay::conformance
