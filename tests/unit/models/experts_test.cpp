// A decoder whose feed-forward is a mixture of experts: counts, the arena's order, drawn experts, refusals; and its
// float64 reference against differences of its loss.
#include <gtest/gtest.h>
#include <algorithm>
#include <assay/models/decoder.hpp>
#include <assay/verification/decoder_reference.hpp>
#include <cmath>
#include <set>

namespace assay::train {
namespace {

using models::DecoderConfig;
using models::Routing;

DecoderConfig small_experts() {
  DecoderConfig c;
  c.d_model = 12, c.d_ff = 20, c.layers = 2, c.heads = 2;
  c.vocab_size = 11, c.batch_size = 2, c.context_length = 5;
  c.experts.count = 5, c.experts.per_token = 2, c.experts.d_ff = 7;
  return c;
}

std::int64_t parameters_of(const DecoderConfig& c) {
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  return set.parameter_count();
}

// As its publisher counts it: 46.7 billion, of which a token uses 12.9.
TEST(Experts, ParametersOfMixtral) {
  DecoderConfig c;
  c.d_model = 4096, c.layers = 32, c.heads = 32, c.kv_heads = 8, c.vocab_size = 32'000;
  c.experts.count = 8, c.experts.per_token = 2, c.experts.d_ff = 14'336;
  EXPECT_EQ(parameters_of(c), 46'702'792'704);
  EXPECT_EQ(models::active_parameters(c, parameters_of(c)), 12'879'925'248);
}

// By its published configuration: biases of every product, and a sink for each head.
TEST(Experts, ParametersOfGptOss20b) {
  DecoderConfig c;
  c.d_model = 2880, c.layers = 24, c.heads = 64, c.kv_heads = 8, c.head_dim = 64, c.vocab_size = 201'088;
  c.experts.count = 32, c.experts.per_token = 4, c.experts.d_ff = 2880;
  c.experts.biases = c.qkv_bias = c.output_bias = c.attention_sinks = true;
  EXPECT_EQ(parameters_of(c), 20'914'757'184);
  EXPECT_EQ(models::active_parameters(c, parameters_of(c)), 4'187'440'704);
}

// By hand: biases of the router, of gate and up and of the output; a shared SwiGLU; one dense layer.
TEST(Experts, ParametersOfBiasesSharedExpertsAndDenseLayers) {
  DecoderConfig c = small_experts();
  c.experts.first_dense_layers = 1;
  const std::int64_t d = 12, ff = 7, rest = 2 * 11 * d + d + 2 * (4 * d * d + 2 * d), dense = 3 * d * 20;
  EXPECT_EQ(parameters_of(c), rest + dense + 5 * d + 5 * 3 * d * ff);
  EXPECT_EQ(models::active_parameters(c, parameters_of(c)), rest + dense + 5 * d + 2 * 3 * d * ff);
  c.experts.biases = true, c.experts.shared_d_ff = 9;
  const std::int64_t one = 3 * d * ff + d + 2 * ff;
  EXPECT_EQ(parameters_of(c), rest + dense + 5 * d + 5 + 5 * one + 3 * d * 9);
  EXPECT_EQ(models::active_parameters(c, parameters_of(c)), rest + dense + 5 * d + 5 + 2 * one + 3 * d * 9);
}

// Operations of one layer with experts in the place of a dense one.
TEST(Experts, OperationsAreThoseOfTheExpertsOfAToken) {
  DecoderConfig c = small_experts();
  c.experts.shared_d_ff = 9;
  DecoderConfig dense = c;
  dense.experts = {};
  const std::uint64_t rows = 10, d = 12;
  EXPECT_EQ(models::decoder_forward_flops(c) + 2 * 2 * rows * d * 3 * 20,
            models::decoder_forward_flops(dense) + 2 * 2 * rows * d * (5 + 3 * (2 * 7 + 9)));
}

TEST(Experts, TheArenaIsInTheOrderInWhichBackwardFinishes) {
  DecoderConfig c = small_experts();
  c.experts.biases = true, c.experts.shared_d_ff = 9;
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  std::vector<std::string> names;
  for (ParameterSet::Id id = ids.layers[1].experts.w2; id <= ids.layers[1].ln2; ++id)
    names.push_back(set.all()[id].name);
  const std::string moe = "layers.1.moe.";
  EXPECT_EQ(names, (std::vector<std::string>{
                       moe + "experts.w2.weight", moe + "experts.w2.bias", moe + "experts.w13.weight",
                       moe + "experts.w13.bias", moe + "router.weight", moe + "router.bias", moe + "shared.w2.weight",
                       moe + "shared.w1.weight", moe + "shared.w3.weight", "layers.1.ln2.weight"}));
  EXPECT_EQ(set.value(ids.layers[1].experts.w13).rank, 3);
  EXPECT_EQ(set.value(ids.layers[1].experts.w13).dim(1), 14);
}

TEST(Experts, DrawnInEqualNumbersAreDistinctAndDifferByOneAtMost) {
  models::ExpertsConfig c{.count = 7, .per_token = 3, .routing = Routing::balanced};
  const std::vector<std::int32_t> experts = models::drawn_experts(c, 101, 1, 5);
  std::vector<int> counts(7);
  for (std::size_t t = 0; t < 101; ++t) {
    EXPECT_EQ(std::set<std::int32_t>(experts.begin() + 3 * static_cast<std::ptrdiff_t>(t),
                                     experts.begin() + 3 * static_cast<std::ptrdiff_t>(t) + 3)
                  .size(),
              3u);
    for (std::size_t j = 0; j < 3; ++j) ++counts[static_cast<std::size_t>(experts[3 * t + j])];
  }
  EXPECT_LE(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()), 1);
  EXPECT_EQ(models::drawn_experts(c, 101, 1, 5), experts);
  EXPECT_NE(models::drawn_experts(c, 101, 1, 6), experts);
}

// Of one expert a token, shares are those of the law: 1 / (e H) of 8 experts, within five deviations.
TEST(Experts, DrawnByZipfsLawHaveItsShares) {
  models::ExpertsConfig c{.count = 8, .per_token = 1, .routing = Routing::zipf, .zipf_exponent = 1};
  const int tokens = 20'000;
  std::vector<int> counts(8);
  for (const std::int32_t e : models::drawn_experts(c, tokens, 1, 1)) ++counts[static_cast<std::size_t>(e)];
  double harmonic = 0;
  for (int e = 1; e <= 8; ++e) harmonic += 1.0 / e;
  for (int e = 0; e < 8; ++e) {
    const double share = 1 / ((e + 1) * harmonic), deviation = std::sqrt(tokens * share * (1 - share));
    EXPECT_NEAR(counts[static_cast<std::size_t>(e)], tokens * share, 5 * deviation) << e;
  }
  c.per_token = 8;  // all of them
  for (int t = 0; t < 3; ++t) {
    const std::vector<std::int32_t> all = models::drawn_experts(c, 3, 1, 1);
    EXPECT_EQ(std::set<std::int32_t>(all.begin() + 8 * t, all.begin() + 8 * t + 8).size(), 8u);
  }
}

assay_status status_of(const DecoderConfig& c) {
  try {
    c.validate();
    return ASSAY_OK;
  } catch (const Error& e) {
    return e.status();
  }
}

TEST(Experts, WhatTheyCannotBeIsRefused) {
  EXPECT_EQ(status_of(small_experts()), ASSAY_OK);
  const auto with = [](auto&& change) {
    DecoderConfig c = small_experts();
    change(c);
    return status_of(c);
  };
  EXPECT_EQ(with([](DecoderConfig& c) { c.experts.per_token = 6; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(with([](DecoderConfig& c) { c.experts.d_ff = 0; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(with([](DecoderConfig& c) { c.experts.first_dense_layers = 3; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(with([](DecoderConfig& c) { c.experts.per_token = 1; }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(with([](DecoderConfig& c) {
              c.experts.rule.score = compute::ExpertScore::sigmoid;
              c.experts.z_coefficient = 0.1;
            }),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(with([](DecoderConfig& c) { c.side_lane = true; }), ASSAY_UNSUPPORTED);
  EXPECT_EQ(with([](DecoderConfig& c) { c.precision.eight_bit_products = true; }), ASSAY_UNSUPPORTED);
  EXPECT_EQ(with([](DecoderConfig& c) { c.split.ranks = 2, c.vocab_size = 12; }), ASSAY_UNSUPPORTED);
}

// What backward reads of a layer with experts is made again but for gate and up: gathered rows and hidden states of one
// layer alone are there at a time.
TEST(Experts, RowsAndHiddenStatesAreNotKept) {
  DecoderConfig c = small_experts();
  c.batch_size = 64, c.layers = 4;
  const auto live = [](const DecoderConfig& config) {
    ParameterSet set(config.precision);
    const models::DecoderParameters ids = models::add_decoder_parameters(set, config);
    return models::DecoderModel(config, set, ids).plan().peak_live_bytes();
  };
  const std::size_t made_again = live(c);
  c.keep_outputs = true;
  const std::size_t rows = 64 * 5 * 2;
  EXPECT_GT(live(c), made_again + 3 * 4 * rows * (12 + 7)) << "three layers more of both";
}

// The reference's gradients are those of its loss: for every parameter a small step of all elements, each in a
// direction drawn for it, with the experts that the reference has chosen.
void expect_gradients_of_the_loss(const DecoderConfig& c, double tolerance = 1e-4) {
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  std::vector<std::vector<float>> weights;
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1'664'525u + 1'013'904'223u;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F;
  };
  for (const Parameter& p : set.all()) {
    weights.emplace_back();
    for (std::int64_t i = 0; i < p.elements(); ++i) weights.back().push_back(p.init_mean + next());
  }
  std::vector<std::int64_t> tokens, labels;
  for (std::int64_t i = 0; i < c.rows(); ++i)
    tokens.push_back(i * 7 % c.vocab_size), labels.push_back(i * 3 % c.vocab_size);
  verification::ChosenExperts chosen{.rounding = INFINITY};
  for (std::int64_t l = 0; l < c.layers; ++l) {
    models::ExpertsConfig drawn = c.experts;
    drawn.routing = Routing::zipf;
    chosen.by_layer.push_back(models::drawn_experts(drawn, c.rows(), 1, static_cast<std::uint64_t>(l)));
  }
  const auto at = verification::decoder_gradients(c, set, weights, tokens, labels, &chosen);
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::vector<float> start = weights[id];
    const auto elements = static_cast<double>(start.size());
    double slope = 0, squares = 0, lengths = 0, losses[2];
    std::vector<float> directions;
    for (std::size_t i = 0; i < start.size(); ++i) directions.push_back(next() < 0 ? -1.0F : 1.0F);
    for (const int side : {0, 1}) {
      for (std::size_t i = 0; i < start.size(); ++i) {
        const float step = static_cast<float>((side == 1 ? 0x1p-9 : -0x1p-9) / std::sqrt(elements)) * directions[i];
        weights[id][i] = start[i] + step;
        // What rounding to fp32 leaves of the step.
        const double taken = double{weights[id][i]} - double{start[i]}, gradient = double{at.gradients[id][i]};
        slope += (side == 1 ? taken : -taken) * gradient;
        lengths += taken * taken, squares += gradient * gradient;
      }
      losses[side] = verification::decoder_gradients(c, set, weights, tokens, labels, &chosen).loss;
    }
    weights[id] = start;
    EXPECT_GT(squares, 0) << set.all()[id].name;
    // The slope that independent terms have.
    EXPECT_NEAR(losses[1] - losses[0], slope, tolerance * std::sqrt(lengths * std::max(squares, 1e-4) / elements))
        << set.all()[id].name;
  }
}

TEST(ExpertsReference, ItsGradientsAreThoseOfItsLoss) { expect_gradients_of_the_loss(small_experts()); }

TEST(ExpertsReference, ItsGradientsAreThoseOfItsLossWithBiasesAndAnotherUnit) {
  DecoderConfig c = small_experts();
  c.experts.biases = true;
  c.experts.unit = {.alpha = 1.702F, .limit = 7, .offset = 1};
  expect_gradients_of_the_loss(c);
}

TEST(ExpertsReference, ItsGradientsAreThoseOfItsLossWithSigmoidsSharedExpertsAndDenseLayers) {
  DecoderConfig c = small_experts();
  c.experts.rule = {.score = compute::ExpertScore::sigmoid, .normalized = false, .factor = 2.5F};
  c.experts.shared_d_ff = 9, c.experts.first_dense_layers = 1;
  expect_gradients_of_the_loss(c);
}

// One token, all experts.
TEST(ExpertsReference, ItsGradientsAreThoseOfItsLossOfAllExperts) {
  DecoderConfig c = small_experts();
  c.experts.per_token = 5;
  expect_gradients_of_the_loss(c);
}

TEST(ExpertsReference, RefusesAChoiceThatIsNotTheBest) {
  const DecoderConfig c = small_experts();
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  std::vector<std::vector<float>> weights;
  std::uint32_t state = 1;
  for (const Parameter& p : set.all()) {
    weights.emplace_back();
    for (std::int64_t i = 0; i < p.elements(); ++i) {
      state = state * 1'664'525u + 1'013'904'223u;
      weights.back().push_back(p.init_mean + static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F);
    }
  }
  const std::vector<std::int64_t> tokens(10, 3), labels(10, 4);
  verification::ChosenExperts chosen;
  chosen.by_layer.assign(2, std::vector<std::int32_t>(20));
  const auto refusal = [&](std::int32_t first, std::int32_t second) {
    for (auto& of_layer : chosen.by_layer)
      for (std::size_t i = 0; i < of_layer.size(); ++i) of_layer[i] = i % 2 == 0 ? first : second;
    try {
      verification::decoder_gradients(c, set, weights, tokens, labels, &chosen);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(1, 1).find("twice"), std::string::npos);
  EXPECT_NE(refusal(1, 5).find("that there is not"), std::string::npos);
  EXPECT_NE(refusal(1, -1).find("that there is not"), std::string::npos);
  int refused = 0;  // of the ten pairs one is the best in the first layer
  for (std::int32_t a = 0; a < 5; ++a)
    for (std::int32_t b = a + 1; b < 5; ++b)
      refused += refusal(a, b).find("whose logit is larger by") != std::string::npos ? 1 : 0;
  EXPECT_GE(refused, 9);
}

}  // namespace
}  // namespace assay::train
