// Mixtures of experts: routing, its losses and gradients, the way to the experts' rows and back, gated units. Their
// products are in test_experts_products.cpp.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "harness.hpp"

namespace assay::conformance {
namespace {

using compute::ExpertScore;
using compute::GatedUnit;
using compute::RoutingRule;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// ---- routing -------------------------------------------------------------------------------------------------------

struct Size {
  std::int64_t tokens, experts, k;
};
// One token, one expert, all of the experts, and as many as models have.
const Size sizes[] = {{1, 1, 1}, {1, 8, 8}, {7, 8, 2}, {5, 33, 33}, {65, 128, 8}, {130, 257, 6}, {300, 64, 4}};

const RoutingRule rules[] = {{},
                             {.normalized = false, .factor = 2.5F},
                             {.score = ExpertScore::sigmoid, .factor = 2.5F},
                             {.score = ExpertScore::sigmoid, .normalized = false}};

struct Routing {
  Values scores, lse, experts, weights;
};

void add_row(Routing& routing, const double* logits, const Size& size, const RoutingRule& rule, const Values& bias,
             const double* given) {
  const auto all = at(size.experts), k = at(size.k);
  const double high = *std::max_element(logits, logits + all);
  double sum = 0;
  for (std::size_t e = 0; e < all; ++e) sum += std::exp(logits[e] - high);
  Values scores(all);
  for (std::size_t e = 0; e < all; ++e)
    scores[e] = rule.score == ExpertScore::softmax ? std::exp(logits[e] - high) / sum : sigmoid(logits[e]);
  std::vector<std::size_t> order(all);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t e) { return scores[e] + (bias.empty() ? 0 : bias[e]); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  if (given)
    for (std::size_t j = 0; j < k; ++j) order[j] = static_cast<std::size_t>(given[j]);
  double chosen = 0;
  for (std::size_t j = 0; j < k; ++j) chosen += scores[order[j]];
  routing.lse.push_back(high + std::log(sum));
  routing.scores.insert(routing.scores.end(), scores.begin(), scores.end());
  for (std::size_t j = 0; j < k; ++j) {
    routing.experts.push_back(static_cast<double>(order[j]));
    routing.weights.push_back(static_cast<double>(rule.factor) * scores[order[j]] / (rule.normalized ? chosen : 1));
  }
}

Routing routing_of(const Values& logits, const Size& size, const RoutingRule& rule, const Values& bias = {},
                   const Values& given = {}) {
  Routing routing;
  for (std::int64_t t = 0; t < size.tokens; ++t)
    add_row(routing, logits.data() + t * size.experts, size, rule, bias,
            given.empty() ? nullptr : given.data() + t * size.k);
  return routing;
}

// Distinct in each row, and in no order.
Values some_experts(const Size& size) {
  Values experts;
  for (std::int64_t t = 0; t < size.tokens; ++t)
    for (std::int64_t j = 0; j < size.k; ++j)
      experts.push_back(static_cast<double>((t * 7 + size.k - j) % size.experts));
  return experts;
}

Values counts_of(const Values& experts, std::int64_t groups) {
  Values counts(at(groups));
  for (const double e : experts)
    if (e >= 0 && e < static_cast<double>(groups)) ++counts[static_cast<std::size_t>(e)];
  return counts;
}

TEST(RouteForward, ScoresChoosesAndWeighs) {
  for (const DType t : float_types())
    for (const Size& size : sizes)
      for (const RoutingRule& rule : rules)
        for (const bool biased : {false, true}) {
          SCOPED_TRACE(std::to_string(size.tokens) + " tokens, " + std::to_string(size.k) + " of " +
                       std::to_string(size.experts));
          const Values logits = random_values(t, size.tokens * size.experts, 1, 0.0, 2.0);
          const Values offsets = biased ? random_values(DType::f32, size.experts, 2, 0.0, 0.3) : Values();
          const Routing expected = routing_of(logits, size, rule, offsets);
          const DeviceTensor x(t, {size.tokens, size.experts}, logits);
          const DeviceTensor bias(DType::f32, {size.experts}, biased ? offsets : Values(at(size.experts)));
          const DeviceTensor scores(DType::f32, {size.tokens, size.experts}), lse(DType::f32, {size.tokens});
          const DeviceTensor experts(DType::i32, {size.tokens, size.k}), weights(DType::f32, {size.tokens, size.k});
          run([&] {
            backend().run(op::RouteForward{.logits = x,
                                           .bias = biased ? bias.tensor() : Tensor(),
                                           .scores = scores,
                                           .lse = lse,
                                           .experts = experts,
                                           .weights = weights,
                                           .rule = rule});
          });
          EXPECT_EQ(experts.read(), expected.experts);
          check("route_forward scores", t, scores.read(), expected.scores, 2e-6);
          check("route_forward lse", t, lse.read(), expected.lse, 2e-6);
          check("route_forward weights", t, weights.read(), expected.weights, 4e-6);
        }
}

TEST(RouteForward, TakesTheExpertsThatAreGiven) {
  for (const DType t : float_types())
    for (const Size& size : sizes)
      for (const RoutingRule& rule : rules) {
        const Values logits = random_values(t, size.tokens * size.experts, 3), names = some_experts(size);
        const Routing expected = routing_of(logits, size, rule, {}, names);
        const DeviceTensor x(t, {size.tokens, size.experts}, logits), given(DType::i32, {size.tokens, size.k}, names);
        const DeviceTensor scores(DType::f32, {size.tokens, size.experts}), lse(DType::f32, {size.tokens});
        const DeviceTensor experts(DType::i32, {size.tokens, size.k}), weights(DType::f32, {size.tokens, size.k});
        run([&] {
          backend().run(op::RouteForward{.logits = x,
                                         .given = given,
                                         .scores = scores,
                                         .lse = lse,
                                         .experts = experts,
                                         .weights = weights,
                                         .rule = rule});
        });
        EXPECT_EQ(experts.read(), names);
        check("route_forward weights", t, weights.read(), expected.weights, 4e-6);
      }
}

TEST(RouteForward, OfEqualScoresTakesTheLowerNumber) {
  const DeviceTensor x(DType::f32, {3, 70}, Values(210, 0.5)), experts(DType::i32, {3, 5});
  const DeviceTensor scores(DType::f32, {3, 70}), lse(DType::f32, {3}), weights(DType::f32, {3, 5});
  run([&] {
    backend().run(op::RouteForward{.logits = x, .scores = scores, .lse = lse, .experts = experts, .weights = weights});
  });
  EXPECT_EQ(experts.read(), (Values{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  check("route_forward weights", DType::f32, weights.read(), Values(15, 0.2), 1e-6);
}

// What follows must not read beyond its memory, whatever the model has come to.
TEST(RouteForward, OfLogitsThatAreNotFiniteNamesExpertsAllTheSame) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  Values logits = random_values(DType::f32, 6 * 40, 4);
  std::fill(logits.begin(), logits.begin() + 40, nan);
  logits[45] = nan, logits[90] = infinite, logits[130] = -infinite;
  std::fill(logits.begin() + 160, logits.begin() + 200, -infinite);
  std::fill(logits.begin() + 200, logits.begin() + 240, infinite);
  for (const DType t : float_types())
    for (const RoutingRule& rule : rules) {
      const DeviceTensor x(t, {6, 40}, logits), experts(DType::i32, {6, 8}), scores(DType::f32, {6, 40});
      const DeviceTensor lse(DType::f32, {6}), weights(DType::f32, {6, 8});
      run([&] {
        backend().run(op::RouteForward{
            .logits = x, .scores = scores, .lse = lse, .experts = experts, .weights = weights, .rule = rule});
      });
      const Values found = experts.read();
      for (std::size_t row = 0; row < 6; ++row) {
        const std::set<double> distinct(found.begin() + static_cast<std::ptrdiff_t>(row * 8),
                                        found.begin() + static_cast<std::ptrdiff_t>(row * 8 + 8));
        EXPECT_EQ(distinct.size(), 8U) << "row " << row;
        EXPECT_GE(*distinct.begin(), 0) << "row " << row;
        EXPECT_LT(*distinct.rbegin(), 40) << "row " << row;
      }
      EXPECT_TRUE(std::isnan(lse.read()[0]));
    }
}

TEST(RouteForward, RefusesWhatDoesNotGoTogether) {
  const DeviceTensor x(DType::f32, {3, 4}, Values(12)), scores(DType::f32, {3, 4}), lse(DType::f32, {3});
  const DeviceTensor experts(DType::i32, {3, 2}), weights(DType::f32, {3, 2}), wide(DType::i32, {3, 5});
  const DeviceTensor wide_weights(DType::f32, {3, 5}), names(DType::i64, {3, 2});
  const op::RouteForward right{.logits = x, .scores = scores, .lse = lse, .experts = experts, .weights = weights};
  const auto status = [](const auto& operation) { return status_of([&] { backend().run(operation); }); };
  op::RouteForward wrong = right;
  wrong.experts = wide, wrong.weights = wide_weights;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "more experts than there are";
  wrong = right, wrong.experts = names;
  EXPECT_EQ(status(wrong), ASSAY_UNSUPPORTED) << "experts as int64";
  wrong = right, wrong.rule.factor = std::numeric_limits<float>::infinity();
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "an infinite factor";
  wrong = right, wrong.lse = weights;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "lse of another shape";
  wrong = right, wrong.weights = scores;
  EXPECT_EQ(status(wrong), ASSAY_INVALID_ARGUMENT) << "weights of another shape";
}

// ---- its losses and gradients --------------------------------------------------------------------------------------

struct Losses {
  double balance, z;
};
Losses losses_of(const Routing& routing, const Values& counts, const Size& size) {
  Losses losses{0, 0};
  const auto tokens = static_cast<double>(size.tokens), choices = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (std::size_t i = 0; i < routing.scores.size(); ++i)
    losses.balance +=
        static_cast<double>(size.experts) * counts[i % counts.size()] / choices * routing.scores[i] / tokens;
  for (const double lse : routing.lse) losses.z += lse * lse / tokens;
  return losses;
}

TEST(RoutingLosses, AreThoseOfTheFormulas) {
  for (const Size& size : {Size{1, 1, 1}, Size{1, 8, 8}, Size{7, 8, 2}, Size{130, 257, 6}, Size{3001, 128, 8}}) {
    const Routing routing = routing_of(random_values(DType::f32, size.tokens * size.experts, 5), size, {});
    const Values chosen = counts_of(routing.experts, size.experts);
    const Values scores_given = rounded(DType::f32, routing.scores), lse_given = rounded(DType::f32, routing.lse);
    const DeviceTensor scores(DType::f32, {size.tokens, size.experts}, scores_given);
    const DeviceTensor lse(DType::f32, {size.tokens}, lse_given), counts(DType::i32, {size.experts}, chosen);
    const DeviceTensor losses(DType::f32, {2});
    run([&] { backend().run(op::RoutingLosses{.scores = scores, .lse = lse, .counts = counts, .losses = losses}); });
    const Losses expected = losses_of({scores_given, lse_given, {}, {}}, chosen, size);
    check("routing_losses", DType::f32, losses.read(), {expected.balance, expected.z}, 1e-5);
    const Values once = losses.read();
    run([&] { backend().run(op::RoutingLosses{.scores = scores, .lse = lse, .counts = counts, .losses = losses}); });
    EXPECT_EQ(losses.read(), once);
  }
}

TEST(RoutingLosses, AreOneWhereAllIsBalanced) {
  const DeviceTensor scores(DType::f32, {4, 8}, Values(32, 0.125)), lse(DType::f32, {4}, Values(4, 3.0));
  const DeviceTensor counts(DType::i32, {8}, Values(8, 1.0)), losses(DType::f32, {2});
  run([&] { backend().run(op::RoutingLosses{.scores = scores, .lse = lse, .counts = counts, .losses = losses}); });
  EXPECT_EQ(losses.read(), (Values{1, 9}));
}

// The formula of experts.hpp.
Values gradient_of(const Routing& routing, const Values& counts, const Values& dweights, const Size& size,
                   const RoutingRule& rule, double balance, double z, double scale) {
  const auto tokens = static_cast<double>(size.tokens), factor = static_cast<double>(rule.factor);
  const double of_balance =
      scale * balance * static_cast<double>(size.experts) / (tokens * tokens * static_cast<double>(size.k));
  Values gradient;
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    const double* const scores = routing.scores.data() + t * size.experts;
    Values by_score(at(size.experts));
    for (std::int64_t e = 0; e < size.experts; ++e) by_score[at(e)] = of_balance * counts[at(e)];
    double chosen = 0, weighted = 0;
    for (std::int64_t j = 0; j < size.k; ++j) {
      const double s = scores[static_cast<std::size_t>(routing.experts[at(t * size.k + j)])];
      chosen += s, weighted += s * dweights[at(t * size.k + j)];
    }
    for (std::int64_t j = 0; j < size.k; ++j) {
      const double by_weight = dweights[at(t * size.k + j)];
      by_score[static_cast<std::size_t>(routing.experts[at(t * size.k + j)])] +=
          rule.normalized ? factor * (by_weight - weighted / chosen) / chosen : factor * by_weight;
    }
    double inner = 0;
    for (std::int64_t e = 0; e < size.experts; ++e) inner += by_score[at(e)] * scores[e];
    const double of_z = scale * z * 2 * routing.lse[at(t)] / tokens;
    for (std::int64_t e = 0; e < size.experts; ++e) {
      const double s = scores[e];
      gradient.push_back(rule.score == ExpertScore::softmax ? s * (by_score[at(e)] - inner + of_z)
                                                            : by_score[at(e)] * s * (1 - s));
    }
  }
  return gradient;
}

TEST(RouteBackward, IsTheGradientOfWeightsAndLosses) {
  for (const Size& size : {Size{5, 6, 2}, Size{3, 4, 4}, Size{2, 1, 1}})
    for (const RoutingRule& rule : rules) {
      const bool softmax = rule.score == ExpertScore::softmax;
      const double balance = 0.7, z = softmax ? 0.3 : 0;
      const Values logits = random_values(DType::f32, size.tokens * size.experts, 6);
      const Values dweights = random_values(DType::f32, size.tokens * size.k, 7);
      const Routing routing = routing_of(logits, size, rule);
      const Values counts = counts_of(routing.experts, size.experts);
      const auto loss = [&](const Values& x) {
        const Routing there = routing_of(x, size, rule, {}, routing.experts);
        const Losses losses = losses_of(there, counts, size);
        return std::inner_product(dweights.begin(), dweights.end(), there.weights.begin(), 0.0) +
               balance * losses.balance + z * losses.z;
      };
      const Values formula = gradient_of(routing, counts, dweights, size, rule, balance, z, 1);
      const Values numerical = numerical_gradient(loss, logits);
      for (std::size_t i = 0; i < formula.size(); ++i) EXPECT_NEAR(formula[i], numerical[i], 1e-8) << i;
    }
  for (const DType t : float_types())
    for (const Size& size : sizes)
      for (const RoutingRule& rule : rules)
        for (const double scaled : {0.0, 3.0}) {  // 0: not given
          const bool softmax = rule.score == ExpertScore::softmax;
          const float balance = 0.25F, z = softmax ? 0.125F : 0.0F;
          const Values given = random_values(DType::f32, size.tokens * size.k, 7);
          Routing routing = routing_of(random_values(DType::f32, size.tokens * size.experts, 6), size, rule);
          routing.scores = rounded(DType::f32, routing.scores), routing.lse = rounded(DType::f32, routing.lse);
          const Values chosen = counts_of(routing.experts, size.experts);
          const DeviceTensor scores(DType::f32, {size.tokens, size.experts}, routing.scores);
          const DeviceTensor lse(DType::f32, {size.tokens}, routing.lse);
          const DeviceTensor experts(DType::i32, {size.tokens, size.k}, routing.experts);
          const DeviceTensor counts(DType::i32, {size.experts}, chosen), scale(DType::f32, {1}, {scaled});
          const DeviceTensor dweights(DType::f32, {size.tokens, size.k}, given);
          const DeviceTensor dlogits(t, {size.tokens, size.experts});
          run([&] {
            backend().run(op::RouteBackward{.scores = scores,
                                            .lse = lse,
                                            .experts = experts,
                                            .counts = counts,
                                            .dweights = dweights,
                                            .dlogits = dlogits,
                                            .rule = rule,
                                            .balance = balance,
                                            .z = z,
                                            .scale = scaled == 0 ? Tensor() : scale.tensor()});
          });
          const Values expected = gradient_of(routing, chosen, given, size, rule, static_cast<double>(balance),
                                              static_cast<double>(z), scaled == 0 ? 1 : scaled);
          // The gradient of one expert alone, or of all of them by a sum that is 1, cancels.
          if (size.k == size.experts && rule.normalized && softmax) {
            const Values found = dlogits.read();
            for (std::size_t i = 0; i < found.size(); ++i)
              EXPECT_NEAR(found[i], expected[i], tolerance_of(t, 2e-6, 0.004) * (1 + std::abs(expected[i]))) << i;
            continue;
          }
          check("route_backward", t, dlogits.read(), expected, tolerance_of(t, 1e-5));
        }
}

TEST(RouteBackward, RefusesAZLossOfSigmoidScores) {
  const DeviceTensor scores(DType::f32, {2, 3}, Values(6, 0.5)), lse(DType::f32, {2}, Values(2));
  const DeviceTensor experts(DType::i32, {2, 1}, {0, 2}), counts(DType::i32, {3}, {1, 0, 1});
  const DeviceTensor dweights(DType::f32, {2, 1}, {1, 2}), dlogits(DType::f32, {2, 3});
  std::string text;
  EXPECT_EQ(status_of(
                [&] {
                  backend().run(op::RouteBackward{.scores = scores,
                                                  .lse = lse,
                                                  .experts = experts,
                                                  .counts = counts,
                                                  .dweights = dweights,
                                                  .dlogits = dlogits,
                                                  .rule = {.score = ExpertScore::sigmoid},
                                                  .z = 0.5F});
                },
                &text),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("z is 0.5 with sigmoid scores"), std::string::npos) << text;
}

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

// A device that reads host memory says which index is bad; one with memory of its own does not look.
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
}  // namespace assay::conformance
