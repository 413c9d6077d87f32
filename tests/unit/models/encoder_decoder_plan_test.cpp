// The encoder-decoder's shape: exact parameter counts, the arena's order, and memory by formula.
#include <gtest/gtest.h>
#include <assay/models/encoder_decoder.hpp>
#include <cmath>

namespace assay::train {
namespace {

using compute::DType;

models::EncoderDecoderConfig config(std::int64_t d, std::int64_t heads, std::int64_t layers, std::int64_t ff) {
  models::EncoderDecoderConfig c;
  c.d_model = d, c.heads = heads, c.encoder_layers = c.decoder_layers = layers, c.d_ff = ff;
  return c;
}

std::int64_t count(const models::EncoderDecoderConfig& c) {
  ParameterSet set(c.precision);
  models::add_encoder_decoder_parameters(set, c);
  return set.parameter_count();
}

TEST(EncoderDecoder, ParameterCounts) {
  EXPECT_EQ(count(models::EncoderDecoderConfig{}), 3'527'168);
  // An encoder layer 12 d^2 + 13 d, a decoder layer 16 d^2 + 19 d at ff = 4 d; two norms, embeddings and the head.
  const auto formula = [](std::int64_t d, std::int64_t layers) {
    return layers * (28 * d * d + 32 * d) + 4 * d + 2 * 8192 * d + 8192 + 256 * d;
  };
  EXPECT_EQ(count(config(512, 8, 6, 2048)), formula(512, 6));
  EXPECT_EQ(count(config(768, 12, 12, 3072)), formula(768, 12));
}

TEST(EncoderDecoder, TheArenaIsInTheOrderInWhichBackwardFinishes) {
  ParameterSet set{workload::PrecisionPolicy{}};
  const models::EncoderDecoderParameters ids =
      models::add_encoder_decoder_parameters(set, models::EncoderDecoderConfig{});
  std::vector<std::string> names;
  for (const Parameter& p : set.all()) names.push_back(p.name);
  EXPECT_EQ(names[0], "out.weight");
  EXPECT_EQ(names[1], "out.bias");
  EXPECT_EQ(names[2], "core.decoder.norm.weight");
  EXPECT_EQ(names[4], "core.decoder.layers.2.norm3.weight");
  EXPECT_EQ(names[6], "core.decoder.layers.2.linear2.bias");
  EXPECT_EQ(names[ids.decoder[2].cross_attention.in_weight], "core.decoder.layers.2.multihead_attn.in_proj_weight");
  EXPECT_EQ(names[names.size() - 2], "pos.weight");
  EXPECT_EQ(names.back(), "emb.weight");
  EXPECT_LT(ids.decoder[0].self_attention.in_bias, ids.encoder_norm);
  EXPECT_LT(ids.encoder_norm, ids.encoder[2].feed_forward.norm_weight);
  for (std::size_t i = 1; i < set.all().size(); ++i) EXPECT_GT(set.all()[i].offset, set.all()[i - 1].offset);
  EXPECT_EQ(set.arena_elements(), set.parameter_count());  // no gaps at the default: activations may lie in gradients
}

// As nn.Transformer begins: variances of xavier_uniform_, and of the uniform distributions of nn.Linear.
TEST(EncoderDecoder, InitialValuesHavePyTorchsVariance) {
  ParameterSet set{workload::PrecisionPolicy{}};
  const models::EncoderDecoderParameters ids =
      models::add_encoder_decoder_parameters(set, models::EncoderDecoderConfig{});
  const auto of = [&](ParameterSet::Id id) { return std::pair{set.all()[id].init_mean, set.all()[id].init_std}; };
  const auto normal = [](double variance) { return std::pair{0.0F, static_cast<float>(std::sqrt(variance))}; };
  const auto expect = [&](ParameterSet::Id id, std::pair<float, float> mean_std) {
    EXPECT_FLOAT_EQ(of(id).first, mean_std.first) << set.all()[id].name;
    EXPECT_FLOAT_EQ(of(id).second, mean_std.second) << set.all()[id].name;
  };
  const models::EncoderDecoderLayerParameters& layer = ids.decoder[1];
  expect(layer.self_attention.in_weight, normal(2.0 / (4 * 128)));
  expect(layer.cross_attention.out_weight, normal(2.0 / (2 * 128)));
  expect(layer.self_attention.in_bias, normal(0));
  expect(layer.feed_forward.in_weight, normal(2.0 / (128 + 512)));
  expect(layer.feed_forward.in_bias, normal(1.0 / (3 * 128)));
  expect(layer.feed_forward.out_bias, normal(1.0 / (3 * 512)));
  expect(layer.feed_forward.norm_weight, {1, 0});
  expect(layer.feed_forward.norm_bias, {0, 0});
  expect(ids.head_weight, normal(1.0 / (3 * 128)));
  expect(ids.embedding, normal(1));
  expect(ids.positions, normal(1));
}

// Forward, with B sequences of S and T = S - 1 tokens: the products by rows, and attention by scores.
TEST(EncoderDecoder, ForwardFlops) {
  const std::uint64_t source = 128 * 256, target = 128 * 255, d = 128, ff = 512;
  const std::uint64_t encoder = source * (4 * d * d + 2 * d * ff) + 2 * source * 256 * d;
  const std::uint64_t decoder = target * (6 * d * d + 2 * d * ff) + source * 2 * d * d +
                                target * 255 * d  // causal: half
                                + 2 * target * 256 * d;
  EXPECT_EQ(models::encoder_decoder_forward_flops(models::EncoderDecoderConfig{}),
            2 * (3 * encoder + 3 * decoder + target * d * 8192));
}

// What a backward needs of each block, by hand. Attention: query-key-value (cross: q of the target, kv of the source),
// result, log-sum-exp, sum, norm's result, mean, rstd. Feed-forward: hidden, sum, result, mean, rstd. When the head's
// backward makes the state's gradient, beside them stand that, the logits' gradient, and the head's gradients.
TEST(EncoderDecoder, ActivationsByFormula) {
  models::EncoderDecoderConfig c;
  c.precision.activation = DType::f16;
  ParameterSet set(c.precision);
  const models::EncoderDecoderParameters ids = models::add_encoder_decoder_parameters(set, c);
  const models::EncoderDecoderModel model(c, set, ids);
  const std::int64_t ns = c.source_rows(), nt = c.target_rows(), d = c.d_model, ff = c.d_ff;
  const auto attention = [&](std::int64_t rows) { return 2 * 3 * rows * d + 4 * rows * (c.heads + 2); };
  const std::int64_t encoder = 2 * 3 * ns * d + attention(ns) + 2 * ns * (ff + 2 * d) + 8 * ns;
  const std::int64_t decoder = 2 * 3 * nt * d + attention(nt)               // self
                               + 2 * (nt * d + 2 * ns * d) + attention(nt)  // cross
                               + 2 * nt * (ff + 2 * d) + 8 * nt;
  // The embeddings; the two norms, of which the decoder's result has been read for the last time.
  const std::int64_t ends = 2 * (ns + nt) * d + 2 * d * ns + 8 * (ns + nt);
  const std::int64_t head = 2 * nt * c.vocab_size + 256 + 2 * (ns + nt) * d;
  const std::int64_t gradients = 4 * (c.vocab_size * d + c.vocab_size);
  const auto expected = static_cast<std::size_t>(3 * encoder + 3 * decoder + ends + head + gradients);
  EXPECT_EQ(model.plan().lower_bound_bytes(), expected);
  EXPECT_LE(static_cast<double>(model.plan().total_bytes()), 1.02 * static_cast<double>(expected));
}

TEST(EncoderDecoder, InferencePlansLess) {
  models::EncoderDecoderConfig c;
  ParameterSet set(c.precision);
  const models::EncoderDecoderParameters ids = models::add_encoder_decoder_parameters(set, c);
  const std::size_t full = models::EncoderDecoderModel(c, set, ids).plan().total_bytes();
  c.backward = false;
  const models::EncoderDecoderModel inference(c, set, ids);
  const std::size_t logits = 4u * static_cast<std::size_t>(c.target_rows() * c.vocab_size);
  EXPECT_LT(inference.plan().total_bytes(), full);
  EXPECT_LT(inference.plan().total_bytes(), logits + full / 10);
}

// A buffer alive at a moment when a gradient is in its place must lie elsewhere; before that it may lie there.
TEST(EncoderDecoder, ActivationsLiveInThePlacesOfGradientsToCome) {
  models::EncoderDecoderConfig c;
  c.batch_size = 2;
  ParameterSet set(c.precision);
  const models::EncoderDecoderParameters ids = models::add_encoder_decoder_parameters(set, c);
  const models::EncoderDecoderModel model(c, set, ids);
  int last_moment = 0;
  for (const BufferPlan::Buffer& b : model.plan().buffers()) last_moment = std::max(last_moment, b.last);
  std::size_t shared = 0;
  for (const BufferPlan::Buffer& b : model.plan().buffers()) {
    if (b.bytes == 0) continue;
    if (b.offset < set.gradient_bytes()) ++shared;
    for (const BufferPlan::Taken& r : model.plan().reserved()) {
      const bool together = b.first <= r.last && r.first <= b.last;
      const bool apart = b.offset + b.bytes <= r.offset || r.offset + r.bytes <= b.offset;
      EXPECT_TRUE(!together || apart) << b.name << " lies in a gradient at " << r.offset;
    }
    if (b.last == last_moment) {
      EXPECT_GE(b.offset, set.gradient_bytes()) << b.name;
    }
  }
  EXPECT_GT(shared, 10u);
  EXPECT_EQ(set.all().size(), 98u);
  EXPECT_EQ(model.plan().reserved().size(), 66u);  // 98 parameters; adjacent ones of one operation are one
}

// Gaps between groups hold zeros that optimizers walk over: no activation may touch them.
TEST(EncoderDecoder, AGradientArenaWithGapsIsNotShared) {
  const models::EncoderDecoderConfig c = config(36, 3, 2, 100);
  ParameterSet set(c.precision);
  const models::EncoderDecoderParameters ids = models::add_encoder_decoder_parameters(set, c);
  ASSERT_NE(set.arena_elements(), set.parameter_count());
  const models::EncoderDecoderModel model(c, set, ids);
  ASSERT_FALSE(model.plan().buffers().empty());
  for (const BufferPlan::Buffer& b : model.plan().buffers())
    EXPECT_TRUE(b.bytes == 0 || b.offset >= set.gradient_bytes()) << b.name;
}

TEST(EncoderDecoder, RefusesShapesThatCannotBe) {
  EXPECT_NO_THROW(config(48, 3, 1, 64).validate());
  EXPECT_THROW(config(128, 3, 1, 64).validate(), Error);
  EXPECT_THROW(config(128, 4, 0, 64).validate(), Error);
  models::EncoderDecoderConfig c;
  c.sequence_length = 1;
  EXPECT_THROW(c.validate(), Error);
  c = {};
  c.dropout = 1.0F;
  EXPECT_THROW(c.validate(), Error);
  c.dropout = std::nanf("");
  EXPECT_THROW(c.validate(), Error);
}

}  // namespace
}  // namespace assay::train
