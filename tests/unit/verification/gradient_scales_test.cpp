// Gradients whose terms cancel: off by the roundings of the terms, and by nothing else.
#include <assay/verification/decoder_check.hpp>
#include <cmath>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

struct Cancelling {
  const char* what;
  const char* precision;
  void (*change)(models::DecoderConfig&);
};

// Attention to one key has no gradient by queries; few heads leave few sums by sinks, and two experts that are both
// chosen one by the router's bias.
TEST(GradientScales, HoldRightModelsWhoseGradientsCancel) {
  for (const Cancelling& of : {Cancelling{"a query's latent", "fp32",
                                          [](models::DecoderConfig& c) {
                                            c.context_length = 1;
                                            c.latent = {.kv_lora_rank = 16,
                                                        .q_lora_rank = 12,
                                                        .qk_nope_head_dim = 8,
                                                        .qk_rope_head_dim = 8,
                                                        .v_head_dim = 8};
                                          }},
                               {"sinks", "bf16",
                                [](models::DecoderConfig& c) {
                                  c.layers = 3, c.heads = 1;
                                  c.attention_sinks = true;
                                }},
                               {"the router's bias", "bf16", [](models::DecoderConfig& c) {
                                  c.experts.count = c.experts.per_token = 2, c.experts.d_ff = 16;
                                  c.experts.biases = true;
                                }}})
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
      const TrainerHost host;
      models::DecoderTrainerConfig config = test::small_trainer();
      config.model.batch_size = 2, config.model.context_length = 16, config.model.vocab_size = 64;
      of.change(config.model);
      config.model.precision = workload::precision_policy(of.precision, "cpu");
      config.seed = seed;
      models::DecoderTrainer trainer(host.host(), config);
      test::set_up(trainer, host);
      EXPECT_EQ(test::wrong_result_of([&] { verification::check_against_float64(host.host(), trainer, 1); }), "")
          << of.what << ", seed " << seed;
    }
}

// Of a layer: the named parameters, each with gradients of this size, of which the last one is not what was expected.
std::string compared(std::vector<std::pair<Parameter, float>> parameters, float error) {
  ParameterSet set({});
  std::vector<verification::BlockDifference> differences;
  for (auto& [parameter, size] : parameters) {
    std::int64_t elements = 1;
    for (const std::int64_t d : parameter.dims) elements *= d;
    const std::vector<float> expected(static_cast<std::size_t>(elements), size);
    std::vector<float> found = expected;
    if (&parameter == &parameters.back().first)
      for (float& x : found) x += error;
    differences.emplace_back(found, expected);
    parameter.name = "layers.0." + parameter.name;
    set.add({parameter});
  }
  const verification::PathTolerance tolerance{
      .loss = 1e-3, .gradient = 1e-2, .block = 5e-2, .factor = 1, .cancelled = 0.5, .sinks = 0.25};
  return test::wrong_result_of([&] { verification::compare_paths("a path", 1, 1, differences, tolerance, set, ""); });
}

TEST(GradientScales, FindWhatIsMoreThanTheRoundingsOfTheTerms) {
  // 4 heads of 8 + 8 columns of keys and 8 of values; latents of 16 and 12 columns. Half a hundredth of what values
  // have is allowed, and they are half of what kv_b_proj makes: sqrt(2) times that.
  const Parameter out{"attn.output_proj.weight", {32, 32}, 0, 0, 0.25F}, kv_b{"attn.kv_b_proj.weight", {64, 16}},
      kv_norm{"attn.kv_a_norm.weight", {16}}, q_b{"attn.q_b_proj.weight", {64, 12}},
      q_norm{"attn.q_a_norm.weight", {12}};
  EXPECT_EQ(compared({{out, 1}, {kv_b, 1}, {q_b, 0}}, 0.0069F), "");
  EXPECT_NE(compared({{out, 1}, {kv_b, 1}, {q_b, 0}}, 0.0073F).find("q_b_proj"), std::string::npos);
  EXPECT_EQ(compared({{out, 1}, {q_b, 0}, {kv_norm, 1}, {q_norm, 0}}, 0.0069F), "");
  EXPECT_NE(compared({{out, 1}, {q_b, 0}, {kv_norm, 1}, {q_norm, 0}}, 0.0073F).find("q_a_norm"), std::string::npos);
  // A hundredth of the weight's.
  const Parameter router{"moe.router.weight", {2, 32}}, bias{"moe.router.bias", {2}};
  EXPECT_EQ(compared({{router, 1}, {bias, 0}}, 0.0099F), "");
  EXPECT_NE(compared({{router, 1}, {bias, 0}}, 0.0101F).find("router.bias"), std::string::npos);
  // A quarter of a hundredth of a sum of 32 x 8 weights of 0.25: 4 of the gradients by them.
  const Parameter sinks{"attn.sinks", {4}};
  EXPECT_EQ(compared({{out, 1}, {sinks, 0}}, 0.0099F), "");
  EXPECT_NE(compared({{out, 1}, {sinks, 0}}, 0.0101F).find("sinks"), std::string::npos);
  // Gradients that do not cancel are held to their own size, larger ones than the weight's to more.
  EXPECT_EQ(compared({{out, 1}, {sinks, 10}}, 0.09F), "");
  EXPECT_NE(compared({{out, 1}, {sinks, 10}}, 0.11F).find("sinks"), std::string::npos);
}

// Of a model with one expert for each of 16 tokens, a gradient that is too large by this share; "" where it passes.
std::string with_factor(const char* name, std::int64_t d_ff, float share) {
  models::DecoderConfig c = test::small_trainer().model;
  c.precision = workload::precision_policy("fp32", "cpu");
  c.d_model = 64, c.layers = 1, c.batch_size = 2, c.context_length = 8;
  c.experts.count = 3, c.experts.per_token = 1, c.experts.d_ff = d_ff, c.experts.rule.normalized = false;
  ParameterSet set({});
  set.add({{name, {3, 64}}});
  const std::vector<float> expected(3 * 64, 1.0F), found(3 * 64, 1 + share);
  return test::wrong_result_of([&] {
    verification::compare_paths("a path", 1, 1, {{found, expected}, {expected, expected}},
                                verification::decoder_tolerance(c), set, "a row");
  });
}

// A token's gradient by the router has one number with an error for each expert that it goes to, and few tokens of
// narrow experts make nearly all of it: its errors cancel less than those of as many independent elements.
TEST(GradientScales, CountOneErrorForEachChoiceOfAToken) {
  const char* const router = "layers.0.moe.router.weight";
  EXPECT_EQ(with_factor(router, 1, 3.04e-6F), "");
  EXPECT_EQ(with_factor(router, 64, 2.8e-6F), "");
  EXPECT_NE(with_factor("layers.0.attn.q_proj.weight", 1, 3.04e-6F).find("q_proj"), std::string::npos);
  // Wrong ones are still found: by a hundred-thousandth with few tokens, by less with wide experts.
  EXPECT_NE(with_factor(router, 1, 1e-5F).find("router.weight"), std::string::npos);
  EXPECT_NE(with_factor(router, 64, 4e-6F).find("router.weight"), std::string::npos);
}

}  // namespace
}  // namespace assay::train
