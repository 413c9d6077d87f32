// The decoder's shape: exact parameter counts, the arena's order, and memory by formula.
#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/train/optimizer.hpp>
#include <map>
#include <string_view>

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

// As their publishers count them.
TEST(Decoder, ParameterCountsOfPublicModels) {
  const std::map<std::string_view, std::int64_t> known{
      {"qwen2.5-0.5b", 494'032'768},  {"qwen2.5-1.5b", 1'543'714'304}, {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-7b", 7'615'616'512},  {"qwen3-0.6b", 596'049'920},     {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},    {"qwen3-8b", 8'190'735'360},     {"llama3-8b", 8'030'261'248},
      {"llama3.1-8b", 8'030'261'248}, {"llama3.2-1b", 1'235'814'400},  {"llama3.2-3b", 3'212'749'824},
      {"gemma2-2b", 2'614'341'888},   {"gemma3-1b", 999'885'952},      {"gemma3-4b", 3'880'263'168}};
  for (const models::PublicModel& m : models::public_models) {
    models::DecoderConfig c = config(m.size.d_model, m.size.d_ff, m.size.layers, m.size.heads);
    c.kv_heads = m.kv_heads, c.vocab_size = m.vocab_size;
    c.head_dim = m.head_dim, c.qk_norm = m.qk_norm;
    c.qkv_bias = m.qkv_bias, c.tied_embeddings = m.tied_embeddings;
    c.post_norms = m.is_gemma();
    EXPECT_EQ(count(c), known.at(m.size.name)) << m.size.name;
    ParameterSet set(c.precision);
    models::add_decoder_parameters(set, c);
    EXPECT_EQ(set.arena_elements(), set.parameter_count()) << "no gaps, in which no activation may lie";
  }
}

TEST(Decoder, ParameterCountOfQwen3WithExperts) {
  models::DecoderConfig c = config(2048, 6144, 48, 32);
  c.kv_heads = 4, c.head_dim = 128, c.vocab_size = 151'936, c.qk_norm = true;
  c.experts.count = 128, c.experts.per_token = 8, c.experts.d_ff = 768;
  EXPECT_EQ(count(c), 30'532'122'624);
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

// Heads of 24 columns, 96 of all queries, in a model that is 64 wide.
TEST(Decoder, HeadsMayHaveAWidthOfTheirOwn) {
  models::DecoderConfig c = config(64, 128, 1, 4);
  c.kv_heads = 2, c.head_dim = 24, c.vocab_size = 100, c.batch_size = 2, c.context_length = 16;
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const auto dims = [&](ParameterSet::Id id) { return set.all()[id].dims; };
  using Dims = std::vector<std::int64_t>;
  EXPECT_EQ(dims(ids.layers[0].q), (Dims{96, 64}));
  EXPECT_EQ(dims(ids.layers[0].k), (Dims{48, 64}));
  EXPECT_EQ(dims(ids.layers[0].v), (Dims{48, 64}));
  EXPECT_EQ(dims(ids.layers[0].output), (Dims{64, 96}));
  const std::uint64_t products = 64 * (96 + 48 + 48) + 96 * 64 + 3 * 64 * 128 + 64 * 100;
  EXPECT_EQ(models::decoder_forward_flops(c), 2 * 32 * products + 2 * 2 * 16 * 16 * 96);
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

std::size_t bytes_of(const models::DecoderModel& model, const std::string& name) {
  for (const BufferPlan::Buffer& b : model.plan().buffers())
    if (b.name == name) return b.tensor.bytes();
  ADD_FAILURE() << "no buffer " << name;
  return 0;
}

// In chunks the logits of one chunk alone are there; the last chunk has what is left.
TEST(Decoder, ALossInChunksPlansTheLogitsOfOne) {
  models::DecoderConfig c = config(128, 256, 2, 2);
  c.vocab_size = 50'000;
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const models::DecoderModel whole(c, set, ids);
  EXPECT_EQ(bytes_of(whole, "logits"), 4u * 2048u * 50'000u);
  c.loss_chunks = 3;
  const models::DecoderModel chunked(c, set, ids);
  EXPECT_EQ(bytes_of(chunked, "logits"), 4u * 683u * 50'000u);
  EXPECT_LT(chunked.plan().total_bytes(), whole.plan().total_bytes() - 4u * 1300u * 50'000u);
}

// Sums of gradients are there from the first micro-batch on: no activation lies in their places.
TEST(Decoder, MicroBatchesPlanActivationsBesideTheGradients) {
  models::DecoderConfig c = config(128, 512, 3, 4);
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  const std::size_t shared = models::DecoderModel(c, set, ids).activation_bytes();
  c.accumulation_steps = 5;
  const models::DecoderModel model(c, set, ids);
  EXPECT_EQ(bytes_of(model, "losses"), 4u * 5u * 2048u);
  EXPECT_EQ(model.activation_bytes(), model.plan().total_bytes()) << "nothing is borrowed";
  EXPECT_GT(model.activation_bytes(), shared);
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

// Two of three layers have a window of 4 of 16 tokens: 10 + 12 * 4 pairs, where half of the matrix is 128.
TEST(Decoder, CountsThePairsOfAWindow) {
  models::DecoderConfig c = config(64, 128, 3, 4);
  c.batch_size = 2, c.context_length = 16;
  const std::uint64_t whole = models::decoder_forward_flops(c);
  c.sliding_window = 4, c.full_attention_every = 3;
  EXPECT_EQ(c.window_of(0), 4);
  EXPECT_EQ(c.window_of(1), 4);
  EXPECT_EQ(c.window_of(2), 0);
  EXPECT_EQ(whole - models::decoder_forward_flops(c), 2ull * 4 * 2 * (128 - 58) * 64);
  c.sliding_window = 16;
  EXPECT_EQ(models::decoder_forward_flops(c), whole) << "a window that hides nothing";
  EXPECT_EQ(compute::visible_pairs(3, 7, true, 2), 6);
  EXPECT_EQ(compute::visible_pairs(3, 7, false, 2), 6 + 2 + 1);
  EXPECT_EQ(compute::visible_pairs(7, 3, true, 0), 6);
}

TEST(Decoder, RefusesShapesThatCannotBe) {
  EXPECT_THROW(config(768, 3072, 12, 7).validate(), Error);
  EXPECT_THROW(config(12, 32, 1, 4).validate(), Error);  // head dimension 3
  const auto refusal = [](auto change) {
    models::DecoderConfig c = config(64, 128, 1, 4);
    change(c);
    try {
      c.validate();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refusal([](auto& c) { c.kv_heads = 3; }), "heads 4 is not a multiple of kv_heads 3");
  EXPECT_EQ(refusal([](auto& c) { c.d_model = 66; }), "d_model 66 is not a multiple of heads 4");
  EXPECT_EQ(refusal([](auto& c) { c.d_model = 66, c.head_dim = 16; }), "nothing");
  EXPECT_EQ(refusal([](auto& c) { c.head_dim = 15; }),
            "the head dimension head_dim = 15 is odd; rotary position embedding needs pairs, an even number");
  EXPECT_EQ(refusal([](auto& c) { c.head_dim = -2; }), "head_dim -2; expected at least 0");
  EXPECT_EQ(refusal([](auto& c) { c.full_attention_every = 2; }),
            "full_attention_every = 2 is of layers beside which others have a window; set sliding_window, or "
            "full_attention_every = 0");
  EXPECT_EQ(refusal([](auto& c) { c.full_attention_every = 1, c.sliding_window = 8; }),
            "full_attention_every = 1 lets every layer see all tokens, so that none reads sliding_window; expected at "
            "least 2, or 0 of all of them");
  EXPECT_EQ(refusal([](auto& c) { c.output_bias = c.residual_in_products = true; }),
            "a product adds a bias or the residual stream; expected output_bias = false, or residual_add = \"norm\"");
  EXPECT_NE(refusal([](auto& c) { c.loss_chunks = 0; }).find("expected at least 1"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.loss_chunks = 2, c.backward = false; }).find("add the backward"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.rope_local_theta = 100; }).find("set full_attention_every"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.rope_local_theta = 0.5; }).find("rope_local_theta of 0 or at least 1"),
            std::string::npos);
  for (const auto& [has, lacks] :
       {std::pair<bool models::DecoderConfig::*, const char*>{&models::DecoderConfig::post_norms, "of dense models"},
        {&models::DecoderConfig::norms_from_one, "residual_add"},
        {&models::DecoderConfig::scaled_embeddings, "tensor_parallel"}})
    EXPECT_NE(refusal([has = has](auto& c) { c.*has = c.residual_in_products = true; }).find(lacks), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.head_dim = 2, c.qk_norm = true; }).find("qk_norm of heads of 2 columns"),
            std::string::npos);
  EXPECT_EQ(refusal([](auto& c) { c.query_pre_attn_scalar = 1e-4; }), "nothing") << "in fp32";
  const auto in_bf16 = [&](auto change) {
    return refusal([&](auto& c) { c.precision.activation = compute::DType::bf16, change(c); });
  };
  EXPECT_NE(in_bf16([](auto& c) { c.query_pre_attn_scalar = 1e-4; }).find("expected scores up to 16"),
            std::string::npos);
  EXPECT_NE(in_bf16([](auto& c) { c.attention_soft_cap = 1e-3; }).find("expected a cap of at least 0.125"),
            std::string::npos);
  EXPECT_EQ(in_bf16([](auto& c) { c.query_pre_attn_scalar = 1; }), "nothing");
  EXPECT_EQ(in_bf16([](auto& c) {
              c.precision.eight_bit_products = true;
              c.rope_scaling = {.kind = compute::RotaryScalingKind::yarn, .factor = 32, .original_positions = 64};
            }),
            "nothing")
      << "in 8 bits";
  EXPECT_NE(refusal([](auto& c) { c.accumulation_steps = 2, c.keep_logits = true; }).find("accumulation_steps = 1"),
            std::string::npos);
}

}  // namespace
}  // namespace assay::train
