// The router of a mixture of experts: scores, the choice, weights, losses, and their gradients.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "expert_values.hpp"
#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::ExpertScore;
using compute::RoutingRule;

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

}  // namespace

// ---- samples: 4 tokens, 3 experts, 2 for each
op::RouteForward sample(Given& g, Kind<op::RouteForward>) {
  return {.logits = g.numbers({4, 3}),
          .bias = g.numbers({3}),
          .scores = g.room({4, 3}),
          .lse = g.room({4}),
          .experts = g.room({4, 2}, DType::i32),
          .weights = g.room({4, 2})};
}
op::RouteBackward sample(Given& g, Kind<op::RouteBackward>) {
  return {.scores = g.positive({4, 3}),
          .lse = g.numbers({4}),
          .experts = g.whole({4, 2}, {0, 1, 1, 2, 2, 0, 0, 1}),
          .counts = g.whole({3}, {3, 3, 2}),
          .dweights = g.numbers({4, 2}),
          .dlogits = g.room({4, 3}),
          .balance = 0.25F,
          .z = 0.125F};
}
op::RoutingLosses sample(Given& g, Kind<op::RoutingLosses>) {
  return {
      .scores = g.positive({4, 3}), .lse = g.numbers({4}), .counts = g.whole({3}, {3, 3, 2}), .losses = g.room({2})};
}

}  // namespace assay::conformance
