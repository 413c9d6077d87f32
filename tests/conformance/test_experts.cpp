// Mixtures of experts: the way to the experts' rows and back, and gated units. The router is in test_routing.cpp, the
// products are in test_experts_products.cpp.
#include <algorithm>
#include <cmath>

#include "expert_values.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::GatedUnit;

// ---- to the rows of the experts, and back --------------------------------------------------------------------------

struct Grouped {
  Values counts, offsets, places, sources;
};
Grouped grouped(const Values& experts, std::int64_t groups) {
  Grouped g{counts_of(experts, groups), {0}, Values(experts.size(), -1.0), Values(experts.size(), -1.0)};
  std::size_t row = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    for (std::size_t i = 0; i < experts.size(); ++i)
      if (experts[i] == static_cast<double>(e)) {
        g.places[i] = static_cast<double>(row);
        g.sources[row++] = static_cast<double>(i);
      }
    g.offsets.push_back(static_cast<double>(row));
  }
  return g;
}

void check_groups(const Values& names, std::int64_t k, std::int64_t groups) {
  const auto tokens = static_cast<std::int64_t>(names.size()) / k;
  const Grouped expected = grouped(names, groups);
  const DeviceTensor experts(DType::i32, {tokens, k}, names), counts(DType::i32, {groups});
  const DeviceTensor offsets(DType::i32, {groups + 1}), places(DType::i32, {tokens, k});
  const DeviceTensor sources(DType::i32, {tokens * k});
  run([&] {
    backend().run(
        op::GroupRows{.experts = experts, .counts = counts, .offsets = offsets, .places = places, .sources = sources});
  });
  EXPECT_EQ(counts.read(), expected.counts);
  EXPECT_EQ(offsets.read(), expected.offsets);
  EXPECT_EQ(places.read(), expected.places);
  EXPECT_EQ(sources.read(), expected.sources);
}

TEST(GroupRows, SortsChoicesByExpertInTheOrderOfTokens) {
  check_groups({0}, 1, 1);
  check_groups({2, 0, 1}, 3, 3);                     // one token, all experts
  check_groups(Values(300, 4.0), 1, 6);              // all rows to one
  check_groups(random_ids(70 * 2, 1, 0, 5), 2, 64);  // most have none
  for (const std::int64_t experts : {1, 7, 128, 300}) {
    SCOPED_TRACE(experts);
    check_groups(random_ids(129 * 8, 2, 0, experts), 8, experts);
    check_groups(random_ids(4099 * 6, 3, 0, experts), 6, experts);
  }
}

TEST(GroupRows, NumbersOfNoExpertBelongToNoGroup) {
  check_groups(Values(10, -1.0), 2, 3);
  check_groups({5, 0, -1, 2, 3, 3, 1, 2147483647, 0, -2147483648.0}, 2, 3);
  check_groups(random_ids(2051 * 4, 4, -3, 40), 4, 32);
}

struct Rows {
  std::int64_t tokens, k, groups, columns;
};
const Rows row_sizes[] = {{1, 1, 1, 1},      {1, 4, 8, 33},    {65, 2, 8, 72},
                          {300, 4, 16, 136}, {130, 3, 7, 264}, {17, 8, 8, 5}};

TEST(GatherRows, TakesTheRowOfEachSource) {
  for (const DType t : float_types())
    for (const Rows& size : row_sizes) {
      // Of each token, and of rows that are copied already; with room for more than there are.
      for (const std::int64_t copies : {size.k, std::int64_t{1}}) {
        Values names = random_ids(size.tokens * size.k, 5, copies == 1 ? -1 : 0, size.groups);
        Values sources = grouped(names, size.groups).sources;
        sources.insert(sources.end(), 9, -1.0);
        const std::int64_t rows = size.tokens * size.k / copies, places = size.tokens * size.k + 9;
        const Values numbers = random_values(t, rows * size.columns, 6);
        const DeviceTensor x(t, {rows, size.columns}, numbers), from(DType::i32, {places}, sources);
        const DeviceTensor to(t, {places, size.columns});
        run([&] { backend().run(op::GatherRows{.x = x, .sources = from, .rows = to, .copies = copies}); });
        Values expected;
        for (const double source : sources)
          for (std::int64_t c = 0; c < size.columns; ++c)
            expected.push_back(source < 0 ? 0
                                          : numbers[at(static_cast<std::int64_t>(source) / copies * size.columns + c)]);
        EXPECT_EQ(to.read(), expected);
      }
    }
}

TEST(CombineRows, AddsTheRowsOfEachToken) {
  for (const DType t : float_types())
    for (const Rows& size : row_sizes)
      for (const bool with_residual : {false, true}) {
        const Values places = grouped(random_ids(size.tokens * size.k, 7, -1, size.groups), size.groups).places;
        const std::int64_t capacity = size.tokens * size.k + 5;
        const Values numbers = random_values(t, capacity * size.columns, 8);
        const Values old = random_values(t, size.tokens * size.columns, 9);
        Values expected = with_residual ? old : Values(old.size());
        for (std::size_t i = 0; i < places.size(); ++i)
          for (std::int64_t c = 0; c < size.columns && places[i] >= 0; ++c)
            expected[at(static_cast<std::int64_t>(i) / size.k * size.columns + c)] +=
                numbers[at(static_cast<std::int64_t>(places[i]) * size.columns + c)];
        const DeviceTensor rows(t, {capacity, size.columns}, numbers), from(DType::i32, {size.tokens, size.k}, places);
        const DeviceTensor residual(t, {size.tokens, size.columns}, old), y(t, {size.tokens, size.columns});
        run([&] {
          backend().run(op::CombineRows{
              .rows = rows, .places = from, .residual = with_residual ? residual.tensor() : Tensor(), .y = y});
        });
        check("combine_rows", t, y.read(), expected, tolerance_of(t, 1e-6));
      }
}

// The sum is rounded once: in bf16 1 + 2^-8 is 1, and 2^-8 more is more than that.
TEST(CombineRows, RoundsOnce) {
  const double small = 0x1p-8;
  const DeviceTensor rows(DType::bf16, {3, 1}, {1, small, small}), places(DType::i32, {1, 3}, {0, 1, 2});
  const DeviceTensor y(DType::bf16, {1, 1});
  run([&] { backend().run(op::CombineRows{.rows = rows, .places = places, .y = y}); });
  EXPECT_EQ(y.read(), Values{1 + 2 * small});
}

// A device that reads host memory says which index is bad; one with its own memory does not look.
TEST(Experts, BadIndicesAreRefusedOnTheCpu) {
  if (is_cuda()) GTEST_SKIP() << "indices lie in the device's memory";
  const DeviceTensor x(DType::f32, {3, 4}, Values(12)), rows(DType::f32, {2, 4}), y(DType::f32, {1, 4});
  const DeviceTensor sources(DType::i32, {2}, {0, 3}), places(DType::i32, {1, 2}, {0, 3});
  std::string text;
  EXPECT_EQ(
      status_of([&] { run([&] { backend().run(op::GatherRows{.x = x, .sources = sources, .rows = rows}); }); }, &text),
      ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("sources has 3 at position 1"), std::string::npos) << text;
  EXPECT_EQ(
      status_of([&] { run([&] { backend().run(op::CombineRows{.rows = x, .places = places, .y = y}); }); }, &text),
      ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("places has 3 at position 1"), std::string::npos) << text;
}

// ---- gated units ---------------------------------------------------------------------------------------------------

struct UnitValue {
  double h, by_gate, by_up;
};
UnitValue unit_value(double gate, double up, const GatedUnit& unit) {
  const auto alpha = static_cast<double>(unit.alpha), limit = static_cast<double>(unit.limit),
             offset = static_cast<double>(unit.offset);
  const double g = limit > 0 ? std::min(gate, limit) : gate, u = limit > 0 ? std::clamp(up, -limit, limit) : up;
  const double s = sigmoid(alpha * g);
  return {g * s * (u + offset), limit > 0 && gate > limit ? 0 : (u + offset) * s * (1 + alpha * g * (1 - s)),
          limit > 0 && std::abs(up) > limit ? 0 : g * s};
}

const GatedUnit units[] = {
    {}, {.alpha = 1.702F, .limit = 7, .offset = 1}, {.alpha = 0.5F, .limit = 1.5F, .offset = -0.25F}};

struct Gated {
  Values h, dgate, dup, dweights;
};

void check_gated(DType t, const Rows& size, const GatedUnit& unit, bool packed) {
  SCOPED_TRACE(std::to_string(size.tokens) + " tokens, " + std::to_string(size.columns) + " columns" +
               (packed ? ", packed" : ""));
  const Grouped g = grouped(random_ids(size.tokens * size.k, 10, -1, size.groups), size.groups);
  Values sources = g.sources;
  sources.insert(sources.end(), 3, -1.0);
  const std::int64_t rows = size.tokens * size.k + 3, width = size.columns;
  const Values both = random_values(t, rows * 2 * width, 11, 0.0, 3.0), given = random_values(t, rows * width, 12);
  const Values factors = random_values(DType::f32, size.tokens * size.k, 13, 0.5);
  Gated expected{Values(at(rows * width)), Values(at(rows * width)), Values(at(rows * width)), Values(factors.size())};
  Values gates(at(rows * width)), ups(at(rows * width));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < width; ++c) {
      const std::size_t i = at(r * width + c);
      gates[i] = both[at(r * 2 * width + c)], ups[i] = both[at(r * 2 * width + width + c)];
      if (sources[at(r)] < 0) continue;
      const double weight = factors[static_cast<std::size_t>(sources[at(r)])];
      const UnitValue value = unit_value(gates[i], ups[i], unit);
      expected.h[i] = weight * value.h;
      expected.dgate[i] = weight * given[i] * value.by_gate, expected.dup[i] = weight * given[i] * value.by_up;
      expected.dweights[static_cast<std::size_t>(sources[at(r)])] += given[i] * value.h;
    }
  const DeviceTensor gate_up(t, {rows, 2 * width}, both), d_gate_up(t, {rows, 2 * width});
  const DeviceTensor gate(t, {rows, width}, gates), up(t, {rows, width}, ups);
  const DeviceTensor dgate(t, {rows, width}), dup(t, {rows, width});
  const DeviceTensor h(t, {rows, width}), again(t, {rows, width}), dh(t, {rows, width}, given);
  const DeviceTensor weights(DType::f32, {size.tokens, size.k}, factors), dweights(DType::f32, {size.tokens, size.k});
  const DeviceTensor from(DType::i32, {rows}, sources);
  const auto first = [&](const Tensor& t2) { return t2.slice(1, 0, width); };
  const auto second = [&](const Tensor& t2) { return t2.slice(1, width, width); };
  const Tensor x = packed ? first(gate_up) : gate.tensor(), y = packed ? second(gate_up) : up.tensor();
  const Tensor dx = packed ? first(d_gate_up) : dgate.tensor(), dy = packed ? second(d_gate_up) : dup.tensor();
  for (const bool with_h : {true, false}) {
    run([&] {
      backend().run(
          op::WeightedGatedForward{.gate = x, .up = y, .weights = weights, .sources = from, .h = h, .unit = unit});
      backend().run(op::WeightedGatedBackward{.gate = x,
                                              .up = y,
                                              .dh = dh,
                                              .weights = weights,
                                              .sources = from,
                                              .dgate = dx,
                                              .dup = dy,
                                              .dweights = dweights,
                                              .h = with_h ? again.tensor() : Tensor(),
                                              .unit = unit});
    });
    check("weighted_gated_forward", t, h.read(), expected.h, tolerance_of(t, 5e-6));
    check("weighted_gated_backward dgate", t, packed ? d_gate_up.read(dx) : dgate.read(), expected.dgate,
          tolerance_of(t, 5e-6));
    check("weighted_gated_backward dup", t, packed ? d_gate_up.read(dy) : dup.read(), expected.dup,
          tolerance_of(t, 5e-6));
    check("weighted_gated_backward dweights", t, dweights.read(), expected.dweights, 1e-5);
    if (with_h) {
      EXPECT_EQ(again.read(), h.read());
    }
  }
  // In the place of gate and up.
  run([&] {
    backend().run(op::WeightedGatedBackward{.gate = x,
                                            .up = y,
                                            .dh = dh,
                                            .weights = weights,
                                            .sources = from,
                                            .dgate = x,
                                            .dup = y,
                                            .dweights = dweights,
                                            .unit = unit});
  });
  EXPECT_EQ(packed ? gate_up.read(x) : gate.read(), packed ? d_gate_up.read(dx) : dgate.read());
  EXPECT_EQ(packed ? gate_up.read(y) : up.read(), packed ? d_gate_up.read(dy) : dup.read());
}

TEST(WeightedGated, ForwardAndBackward) {
  for (const DType t : float_types())
    for (const Rows& size : row_sizes)
      for (const GatedUnit& unit : units)
        for (const bool packed : {false, true}) check_gated(t, size, unit, packed);
}

// Rows of no token may hold anything.
TEST(WeightedGated, RowsWithoutASourceAreNotLookedAt) {
  const DeviceTensor gate(DType::f32, {3, 40}), up(DType::f32, {3, 40}), dh(DType::f32, {3, 40});  // all NaN
  const DeviceTensor weights(DType::f32, {2}, {1, 2}), sources(DType::i32, {3}, Values(3, -1.0));
  const DeviceTensor h(DType::f32, {3, 40}), again(DType::f32, {3, 40}), dgate(DType::f32, {3, 40});
  const DeviceTensor dup(DType::f32, {3, 40}), dweights(DType::f32, {2});
  run([&] {
    backend().run(op::WeightedGatedForward{.gate = gate, .up = up, .weights = weights, .sources = sources, .h = h});
    backend().run(op::WeightedGatedBackward{.gate = gate,
                                            .up = up,
                                            .dh = dh,
                                            .weights = weights,
                                            .sources = sources,
                                            .dgate = dgate,
                                            .dup = dup,
                                            .dweights = dweights,
                                            .h = again});
  });
  for (const DeviceTensor* t : {&h, &again, &dgate, &dup}) EXPECT_EQ(t->read(), Values(120));
  EXPECT_EQ(dweights.read(), Values(2));
}

TEST(WeightedGated, BeyondTheLimitTheGradientIs0) {
  const GatedUnit unit{.alpha = 1.702F, .limit = 7, .offset = 1};
  // At the limit itself it is not.
  const DeviceTensor gate(DType::f32, {1, 4}, {7, 7.5, -9, 2}), up(DType::f32, {1, 4}, {-7, 1, 8, -8});
  const DeviceTensor dh(DType::f32, {1, 4}, Values(4, 1.0)), weights(DType::f32, {1}, {1});
  const DeviceTensor sources(DType::i32, {1}, Values{0}), dgate(DType::f32, {1, 4}), dup(DType::f32, {1, 4});
  const DeviceTensor dweights(DType::f32, {1});
  run([&] {
    backend().run(op::WeightedGatedBackward{.gate = gate,
                                            .up = up,
                                            .dh = dh,
                                            .weights = weights,
                                            .sources = sources,
                                            .dgate = dgate,
                                            .dup = dup,
                                            .dweights = dweights,
                                            .unit = unit});
  });
  const Values by_gate = dgate.read(), by_up = dup.read();
  EXPECT_NE(by_gate[0], 0);
  EXPECT_EQ(by_gate[1], 0);
  EXPECT_NE(by_gate[2], 0);
  EXPECT_NE(by_up[0], 0);
  EXPECT_NE(by_up[1], 0);
  EXPECT_EQ(by_up[2], 0);
  EXPECT_EQ(by_up[3], 0);
}

TEST(WeightedGated, RefusesALimitBelow0) {
  const DeviceTensor gate(DType::f32, {1, 4}, Values(4)), up(DType::f32, {1, 4}, Values(4)), h(DType::f32, {1, 4});
  const DeviceTensor weights(DType::f32, {1}, {1}), sources(DType::i32, {1}, Values{0});
  EXPECT_EQ(status_of([&] {
              backend().run(op::WeightedGatedForward{
                  .gate = gate, .up = up, .weights = weights, .sources = sources, .h = h, .unit = {.limit = -1}});
            }),
            ASSAY_INVALID_ARGUMENT);
}

TEST(Experts, NothingAllocatesInASecondExecution) {
  for (const DType t : float_types()) {
    const DeviceTensor logits(t, {400, 32}, random_values(t, 400 * 32, 14)), dlogits(t, {400, 32});
    const DeviceTensor scores(DType::f32, {400, 32}), lse(DType::f32, {400}), weights(DType::f32, {400, 4});
    const DeviceTensor experts(DType::i32, {400, 4}), counts(DType::i32, {32}), offsets(DType::i32, {33});
    const DeviceTensor places(DType::i32, {400, 4}), sources(DType::i32, {1600}), losses(DType::f32, {2});
    const DeviceTensor x(t, {400, 72}, random_values(t, 400 * 72, 15)), y(t, {400, 72}), rows(t, {1600, 72});
    const DeviceTensor h(t, {1600, 72}), dgate(t, {1600, 72}), dup(t, {1600, 72}), dweights(DType::f32, {400, 4});
    EXPECT_EQ(allocations_in_second([&] {
                backend().run(op::RouteForward{
                    .logits = logits, .scores = scores, .lse = lse, .experts = experts, .weights = weights});
                backend().run(op::GroupRows{
                    .experts = experts, .counts = counts, .offsets = offsets, .places = places, .sources = sources});
                backend().run(op::RoutingLosses{.scores = scores, .lse = lse, .counts = counts, .losses = losses});
                backend().run(op::GatherRows{.x = x, .sources = sources, .rows = rows, .copies = 4});
                backend().run(
                    op::WeightedGatedForward{.gate = rows, .up = rows, .weights = weights, .sources = sources, .h = h});
                backend().run(op::CombineRows{.rows = h, .places = places, .residual = x, .y = y});
                backend().run(op::WeightedGatedBackward{.gate = rows,
                                                        .up = rows,
                                                        .dh = rows,
                                                        .weights = weights,
                                                        .sources = sources,
                                                        .dgate = dgate,
                                                        .dup = dup,
                                                        .dweights = dweights});
                backend().run(op::RouteBackward{.scores = scores,
                                                .lse = lse,
                                                .experts = experts,
                                                .counts = counts,
                                                .dweights = dweights,
                                                .dlogits = dlogits,
                                                .balance = 0.1F,
                                                .z = 0.1F});
              }),
              0U)
        << name_of(t);
  }
}

}  // namespace

// ---- samples: 4 tokens, 3 experts, 2 for each
op::GroupRows sample(Given& g, Kind<op::GroupRows>) {
  return {.experts = g.whole({4, 2}, {0, 1, 1, 2, 2, 0, 0, 1}),
          .counts = g.room({3}, DType::i32),
          .offsets = g.room({4}, DType::i32),
          .places = g.room({4, 2}, DType::i32),
          .sources = g.room({8}, DType::i32)};
}
op::GatherRows sample(Given& g, Kind<op::GatherRows>) {
  return {.x = g.numbers({4, 8}), .sources = g.whole({6}, {0, 3, 2, 7, 4, -1}), .rows = g.room({6, 8}), .copies = 2};
}
op::CombineRows sample(Given& g, Kind<op::CombineRows>) {
  return {.rows = g.numbers({6, 8}),
          .places = g.whole({3, 2}, {4, 1, 0, -1, 2, 3}),
          .residual = g.numbers({3, 8}),
          .y = g.room({3, 8})};
}
op::WeightedGatedForward sample(Given& g, Kind<op::WeightedGatedForward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .weights = g.numbers({3, 2}),
          .sources = g.whole({6}, {5, 1, 0, 2, 4, -1}),
          .h = g.room(sample_shape)};
}
op::WeightedGatedBackward sample(Given& g, Kind<op::WeightedGatedBackward>) {
  return {.gate = g.numbers(sample_shape),
          .up = g.numbers(sample_shape),
          .dh = g.numbers(sample_shape),
          .weights = g.numbers({3, 2}),
          .sources = g.whole({6}, {5, 1, 0, 2, 4, -1}),
          .dgate = g.room(sample_shape),
          .dup = g.room(sample_shape),
          .dweights = g.room({3, 2}),
          .h = g.room(sample_shape)};
}

}  // namespace assay::conformance
