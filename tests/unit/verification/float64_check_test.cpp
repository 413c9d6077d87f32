// A decoder against float64, of as many layers as the host can afford.
#include <algorithm>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using test::TrainerHost;

models::DecoderTrainerConfig of_layers(std::int64_t layers) {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.layers = layers;
  return c;
}

// The tables of a model of the first layers lie where gradients of the others would: a start that follows their making
// clears them, and then nothing agrees.
TEST(Float64Check, OfADeepModelHoldsItsFirstLayers) {
  for (const bool fused : {true, false}) {
    const TrainerHost host;
    models::DecoderTrainerConfig config = of_layers(6);
    config.model.fused = config.model.flash = fused;
    models::DecoderTrainer trainer(host.host(), config);
    test::set_up(trainer, host);
    const Verified verified = verification::check_against_float64(host.host(), trainer, 1);
    EXPECT_FALSE(verified.in_part);
    EXPECT_NE(verified.text.find("4 of 6 layers against float64: loss differs by"), std::string::npos) << verified.text;
  }
}

TEST(Float64Check, OfAShallowModelHoldsAllOfIt) {
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), of_layers(2));
  test::set_up(trainer, host);
  const Verified verified = verification::check_against_float64(host.host(), trainer, 1);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("2 of 2 layers against float64: loss differs by"), std::string::npos) << verified.text;
}

TEST(Float64Check, OfMicroBatchesOfOneSequenceHoldsThreeWhereTheOtherPathCannotTakeThemTogether) {
  models::DecoderConfig model = test::small_trainer().model;
  model.batch_size = 1;
  for (const std::int64_t count : {2, 3, 5}) {
    model.accumulation_steps = count;
    EXPECT_EQ(verification::reference_shape(model).accumulation_steps, std::min<std::int64_t>(count, 3));
    EXPECT_EQ(verification::opposite_path(model).batch_size, count == 5 ? 1 : count);
    EXPECT_EQ(verification::opposite_path(model).step_rows(), model.step_rows());
  }
}

TEST(OppositePath, CutsMicroBatchesIntoNoMoreThanRoundingAllows) {
  models::DecoderConfig model = test::small_trainer().model;
  const auto cut = [&](std::int64_t steps, std::int64_t sequences) {
    model.accumulation_steps = steps, model.batch_size = sequences;
    const models::DecoderConfig other = verification::opposite_path(model);
    EXPECT_EQ(other.step_rows(), model.step_rows());
    return std::pair(other.accumulation_steps, other.batch_size);
  };
  EXPECT_EQ(cut(2, 3), std::pair(std::int64_t{6}, std::int64_t{1}));
  EXPECT_EQ(cut(4, 16), std::pair(std::int64_t{64}, std::int64_t{1}));
  EXPECT_EQ(cut(4, 128), std::pair(std::int64_t{64}, std::int64_t{8}));
  // Where no part is left, micro-batches are taken together.
  EXPECT_EQ(cut(64, 2), std::pair(std::int64_t{32}, std::int64_t{4}));
  EXPECT_EQ(cut(63, 7), std::pair(std::int64_t{21}, std::int64_t{21}));
}

// Turns the other way, in forward and in backward alike.
class TurnsTheOtherWay final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    const auto* const rotary = compute::operation_cast<op::Rotary>(any);
    if (!rotary) return real().run_any(any);
    op::Rotary turned = *rotary;
    turned.inverse = !turned.inverse;
    real().run(turned);
  }
};

TEST(Float64Check, OfADeepModelFindsWhatIsWrong) {
  const TrainerHost host(test::broken<TurnsTheOtherWay>());
  models::DecoderTrainerConfig config = of_layers(6);
  config.model.fused = config.model.flash = false;
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  EXPECT_NE(test::wrong_result_of([&] { verification::check_against_float64(host.host(), trainer, 1); }), "");
}

// Of few words and tokens logits are large, and gradients by queries and keys made of few differences, some of which
// nearly cancel: the roundings of 16 bits are then a large part of them.
TEST(Float64Check, OfFewTokensHoldsARightModel) {
  for (const std::int64_t context : {2, 4})
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
      const TrainerHost host;
      models::DecoderTrainerConfig config = of_layers(seed % 2 == 0 ? 1 : 4);
      config.model.batch_size = 1, config.model.context_length = context, config.model.vocab_size = 5;
      config.model.qk_norm = seed % 4 >= 2;
      config.model.precision = workload::precision_policy("bf16", "cpu");
      config.seed = seed;
      models::DecoderTrainer trainer(host.host(), config);
      test::set_up(trainer, host);
      EXPECT_EQ(test::wrong_result_of([&] {
                  verification::check_against_float64(host.host(), trainer, 1);
                  verification::check_own_gradients(trainer);
                }),
                "")
          << context << " tokens, seed " << seed;
    }
}

// Large scores and small caps make roundings larger on their way to the gradients.
TEST(Float64Check, OfLargeScoresAndSmallCapsHoldsARightModel) {
  using Change = void (*)(models::DecoderConfig&);
  for (const auto& [precision, change] : std::initializer_list<std::pair<const char*, Change>>{
           {"fp32", [](models::DecoderConfig& c) { c.query_pre_attn_scalar = 1e-3; }},
           {"fp32", [](models::DecoderConfig& c) { c.attention_soft_cap = 1e-3; }},
           {"fp32",
            [](models::DecoderConfig& c) {
              c.rope_scaling.kind = compute::RotaryScalingKind::yarn;
              c.rope_scaling.factor = 4, c.rope_scaling.original_positions = 16, c.rope_scaling.magnitude = 30;
            }},
           {"bf16", [](models::DecoderConfig& c) { c.query_pre_attn_scalar = 0.2; }},
           {"bf16", [](models::DecoderConfig& c) { c.attention_soft_cap = 0.2; }},
           {"bf16", [](models::DecoderConfig& c) { c.head_dim = 4, c.qk_norm = true; }}})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const TrainerHost host;
      models::DecoderTrainerConfig config = of_layers(2);
      config.seed = seed;
      config.model.precision = workload::precision_policy(precision, "cpu");
      change(config.model);
      models::DecoderTrainer trainer(host.host(), config);
      test::set_up(trainer, host);
      EXPECT_EQ(test::wrong_result_of([&] {
                  verification::check_against_float64(host.host(), trainer, 1);
                  verification::check_own_gradients(trainer);
                }),
                "")
          << precision << ", scores " << config.model.usual_score() << ", cap " << config.model.attention_soft_cap
          << ", seed " << seed;
    }
}

TEST(Float64Check, OfManyTokensAndWordsToleratesNoMore) {
  models::DecoderConfig model = test::small_trainer().model;
  model.precision = workload::precision_policy("bf16", "cpu");
  model.context_length = 128;
  const auto most = verification::path_tolerance(model.precision, model.layers, model.step_rows());
  const auto tolerance = verification::decoder_tolerance(model);
  EXPECT_EQ(tolerance.loss, most.loss);
  EXPECT_EQ(tolerance.gradient, most.gradient);
  EXPECT_EQ(tolerance.block, most.block);
  EXPECT_LT(tolerance.factor, 1.02 * most.factor);
  EXPECT_EQ(tolerance.cancelled, most.cancelled);
  model.query_pre_attn_scalar = static_cast<double>(model.head_width()) / 9;
  EXPECT_NEAR(verification::decoder_tolerance(model).gradient, 3 * most.gradient, 1e-9) << "scores of size three";
  model.query_pre_attn_scalar = 0, model.attention_soft_cap = 30;
  EXPECT_EQ(verification::decoder_tolerance(model).gradient, most.gradient) << "a cap far above the scores";
}

// What an H200 had: 0.155 of a block, where 0.151 was allowed.
TEST(Float64Check, ABlockOfAnExpertThatHasOneTokenMayDifferMore) {
  models::DecoderConfig model = test::small_trainer().model;
  model.precision = workload::precision_policy("bf16", "cpu");
  model.batch_size = 1, model.context_length = 16, model.layers = 1;
  const double dense = verification::decoder_tolerance(model).block;
  model.experts.count = 128, model.experts.per_token = 8;
  EXPECT_EQ(verification::decoder_tolerance(model).block, 2 * dense);
  EXPECT_GT(verification::decoder_tolerance(model).block, 1.5 * 0.155);
  model.context_length = 8192;
  EXPECT_LT(verification::decoder_tolerance(model).block, 1.05 * dense);
}

// Of documents of one token the last one of each sequence has a label.
TEST(Float64Check, ALossOfFewLabelsIsAMeanOfFew) {
  models::DecoderConfig model = test::small_trainer().model;
  model.precision = workload::precision_policy("bf16", "cpu");
  model.context_length = 128;
  const double whole = verification::decoder_tolerance(model).loss;
  model.documents.assign(128, 1);
  const auto few = verification::path_tolerance(model.precision, model.layers, model.batch_size);
  EXPECT_EQ(verification::decoder_tolerance(model).loss, few.loss);
  EXPECT_GT(few.loss, 2 * whole);
  model.documents.clear();
  EXPECT_EQ(verification::decoder_tolerance(model, model.batch_size).loss, few.loss) << "labels of a file";
}

}  // namespace
}  // namespace assay::train
