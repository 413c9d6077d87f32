// The decoder's shape: exact parameter counts, the arena's order, and memory by formula.
#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <assay/train/optimizer.hpp>

namespace assay::train {
namespace {

using compute::DType;

models::DecoderConfig config(std::int64_t d, std::int64_t ff, std::int64_t layers, std::int64_t heads) {
  models::DecoderConfig c;
  c.d_model = d, c.d_ff = ff, c.layers = layers, c.heads = heads;
  return c;
}

std::int64_t count(const models::DecoderConfig& c) {
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  return set.parameter_count();
}

TEST(Decoder, ParameterCountsOfAllSizes) {
  EXPECT_EQ(count(config(768, 3072, 12, 12)), 128'625'408);
  EXPECT_EQ(count(config(1024, 4096, 24, 16)), 423'183'360);
  EXPECT_EQ(count(config(1280, 5120, 36, 20)), 969'411'840);
  EXPECT_EQ(count(config(1600, 6400, 48, 25)), 1'998'235'200);
  EXPECT_EQ(count(config(2560, 10240, 32, 32)), 3'406'809'600);
}

TEST(Decoder, TheArenaIsInTheOrderInWhichBackwardFinishes) {
  const models::DecoderConfig c = config(64, 128, 2, 2);
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  std::vector<std::string> names;
  for (const Parameter& p : set.all()) names.push_back(p.name);
  EXPECT_EQ(names.front(), "lm_head.weight");
  EXPECT_EQ(names[1], "ln_final.weight");
  EXPECT_EQ(names[2], "layers.1.ffn.w2.weight");
  EXPECT_EQ(names.back(), "token_embeddings.weight");
  for (std::size_t i = 1; i < set.all().size(); ++i) EXPECT_GT(set.all()[i].offset, set.all()[i - 1].offset);
}

TEST(Decoder, GroupsAreOneMatrix) {
  const models::DecoderConfig c = config(64, 128, 1, 2);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  std::vector<float> arena(static_cast<std::size_t>(set.arena_elements()));
  set.bind(arena.data(), nullptr, nullptr);
  const compute::Tensor qkv = set.value(ids.layers[0].q, 3);
  EXPECT_EQ(qkv.dim(0), 3 * 64);
  EXPECT_EQ(static_cast<float*>(set.value(ids.layers[0].v).data) - static_cast<float*>(qkv.data), 2 * 64 * 64);
}

// AdamW in fp32: weights, gradients and two moments, 4 bytes each, and the two scalars of the state.
TEST(Decoder, StateBytesByFormula) {
  const models::DecoderConfig c = config(768, 3072, 12, 12);
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  const Optimizer adamw({}, set);
  EXPECT_EQ(set.arena_elements(), 128'625'408);  // every dimension is a multiple of 64: no padding
  EXPECT_EQ(set.value_bytes(), 4u * 128'625'408u);
  EXPECT_EQ(set.copy_bytes(), 0u);
  EXPECT_EQ(set.gradient_bytes(), 4u * 128'625'408u);
  EXPECT_EQ(adamw.state_bytes(), 8u * 128'625'408u + 512u);
  const Optimizer sgd({.name = "sgd"}, set);
  EXPECT_EQ(sgd.state_bytes(), 512u);
}

TEST(Decoder, Bf16KeepsACopyOfTheWeights) {
  models::DecoderConfig c = config(768, 3072, 12, 12);
  c.precision.activation = DType::bf16;
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  EXPECT_EQ(set.value_bytes(), 4u * 128'625'408u);
  EXPECT_EQ(set.copy_bytes(), 2u * 128'625'408u);
}

// What a backward needs of each layer, by hand: input, query-key-value (3), attention, middle: 6 d; gate and up: 2 ff;
// two rstd; log-sum-exp per head. Beside them stand the largest temporaries, the gradients by the logits, when the
// head's backward makes of them the gradient by its weights, or by its input.
TEST(Decoder, ActivationsByFormula) {
  const models::DecoderConfig c = config(768, 3072, 12, 12);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const models::DecoderModel model(c, set, ids);
  const std::int64_t n = c.rows();
  const std::int64_t saved = 4 * n * c.layers * (6 * 768 + 2 * 3072 + 2 + 12);
  const std::int64_t rotary = 4 * 2 * c.context_length * 32;
  // The final norm's input, and its result or the gradient by that: 2 d; logits; rstd; the loss.
  const std::int64_t head = 4 * n * (2 * 768 + c.vocab_size + 1) + 256;
  // The gradient by the head's weights has its place in the arena; all others still hold activations.
  const std::int64_t gradients = 4 * c.vocab_size * 768;
  const auto expected = static_cast<double>(saved + rotary + head + gradients);
  EXPECT_EQ(model.plan().lower_bound_bytes(), static_cast<std::size_t>(saved + rotary + head + gradients));
  EXPECT_LE(static_cast<double>(model.plan().total_bytes()), 1.02 * expected);
}

TEST(Decoder, CheckpointingAndInferencePlanLess) {
  models::DecoderConfig c = config(768, 3072, 12, 12);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const std::size_t full = models::DecoderModel(c, set, ids).plan().total_bytes();
  c.checkpointing = true;
  const std::size_t checkpointed = models::DecoderModel(c, set, ids).plan().total_bytes();
  c.checkpointing = false, c.backward = false;
  const std::size_t inference = models::DecoderModel(c, set, ids).plan().total_bytes();
  EXPECT_LT(checkpointed, set.gradient_bytes() + full / 3);
  EXPECT_LT(checkpointed, full);
  EXPECT_LT(inference, checkpointed);
}

// A buffer alive at a moment when a gradient is in its place must lie elsewhere; before that it may lie there.
TEST(Decoder, ActivationsLiveInThePlacesOfGradientsToCome) {
  for (const bool side_lane : {false, true}) {
    models::DecoderConfig c = config(128, 512, 3, 4);
    c.side_lane = side_lane;
    ParameterSet set(c.precision);
    const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
    const models::DecoderModel model(c, set, ids);
    int last_moment = 0;
    for (const BufferPlan::Buffer& b : model.plan().buffers()) last_moment = std::max(last_moment, b.last);
    std::size_t shared = 0;
    for (const BufferPlan::Buffer& b : model.plan().buffers()) {
      if (b.bytes > 0 && b.offset < set.gradient_bytes()) ++shared;
      // At the last moment every gradient is in its place.
      if (b.last == last_moment) {
        EXPECT_GE(b.offset, set.gradient_bytes()) << b.name;
      }
    }
    EXPECT_GT(shared, 10u);
    EXPECT_LT(model.activation_bytes(), model.plan().lower_bound_bytes());
  }
}

// Gaps between groups hold zeros that optimizers walk over: no activation may touch them.
TEST(Decoder, AGradientArenaWithGapsIsNotShared) {
  const models::DecoderConfig c = config(36, 100, 2, 3);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  ASSERT_NE(set.arena_elements(), set.parameter_count());
  const models::DecoderModel model(c, set, ids);
  ASSERT_FALSE(model.plan().buffers().empty());
  for (const BufferPlan::Buffer& b : model.plan().buffers())
    EXPECT_TRUE(b.bytes == 0 || b.offset >= set.gradient_bytes()) << b.name;
}

// Padding at the end costs itself and no more: activations still lie in the places of gradients to come.
TEST(Decoder, APaddedGradientArenaIsSharedUpToItsPadding) {
  const models::DecoderConfig c = config(128, 512, 3, 4);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const models::DecoderModel tight(c, set, ids);
  ParameterSet padded(c.precision);
  models::add_decoder_parameters(padded, c);
  padded.pad_to(1'000'000 * 64);
  ASSERT_GT(padded.tail_elements(), 0);
  const models::DecoderModel model(c, padded, ids);
  EXPECT_EQ(model.activation_bytes(), tight.activation_bytes());
  EXPECT_EQ(padded.gradient_bytes(), set.gradient_bytes() + 4u * static_cast<std::size_t>(padded.tail_elements()));
}

// small, batch 4, context 512: 2 N (L (4 d^2 + 3 d ff) + d V) + 2 L B T^2 d.
TEST(Decoder, ForwardFlops) {
  const models::DecoderConfig c = config(768, 3072, 12, 12);
  EXPECT_EQ(
      models::decoder_forward_flops(c),
      2ull * 2048 * (12ull * (4 * 768 * 768 + 3 * 768 * 3072) + 768ull * 10'000) + 2ull * 12 * 4 * 512 * 512 * 768);
}

TEST(Decoder, RefusesShapesThatCannotBe) {
  EXPECT_THROW(config(768, 3072, 12, 7).validate(), Error);
  EXPECT_THROW(config(12, 32, 1, 4).validate(), Error);  // head dimension 3
}

}  // namespace
}  // namespace assay::train
