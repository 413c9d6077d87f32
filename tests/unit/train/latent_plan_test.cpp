// Latent attention in a decoder's shape: parameters, operations, and what does not go with it.
#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <assay/models/published_weights.hpp>
#include <string>
#include <vector>

namespace assay::train {
namespace {

models::DecoderConfig latent_config() {
  models::DecoderConfig c;
  c.d_model = 64, c.d_ff = 128, c.layers = 1, c.heads = 3;
  c.vocab_size = 100, c.batch_size = 2, c.context_length = 16;
  c.latent = {.kv_lora_rank = 20, .qk_nope_head_dim = 10, .qk_rope_head_dim = 6, .v_head_dim = 12};
  return c;
}

// deepseek-ai/DeepSeek-V2-Lite's config.json.
TEST(LatentDecoder, HasTheParametersOfDeepSeekV2Lite) {
  models::DecoderConfig c;
  c.d_model = 2048, c.d_ff = 10'944, c.layers = 27, c.heads = 16, c.vocab_size = 102'400;
  c.latent = {.kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128};
  c.experts.count = 64, c.experts.per_token = 6, c.experts.d_ff = 1408, c.experts.shared_d_ff = 2 * 1408;
  c.experts.first_dense_layers = 1;
  c.validate();
  ParameterSet set(c.precision);
  models::add_decoder_parameters(set, c);
  EXPECT_EQ(set.parameter_count(), 15'706'484'224);
}

TEST(LatentDecoder, ArenaIsInTheOrderInWhichBackwardFinishes) {
  models::DecoderConfig c = latent_config();
  c.latent.q_lora_rank = 14;
  ParameterSet set(c.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, c);
  std::vector<std::string> names;
  for (ParameterSet::Id id = ids.layers[0].output; id <= ids.layers[0].ln1; ++id) names.push_back(set.all()[id].name);
  const std::string attn = "layers.0.attn.";
  EXPECT_EQ(names,
            (std::vector<std::string>{attn + "output_proj.weight", attn + "kv_b_proj.weight", attn + "kv_a_norm.weight",
                                      attn + "q_b_proj.weight", attn + "q_a_norm.weight", attn + "q_a_proj.weight",
                                      attn + "kv_a_proj.weight", "layers.0.ln1.weight"}));
  using Dims = std::vector<std::int64_t>;
  EXPECT_EQ(set.all()[ids.layers[0].latent.kv_b].dims, (Dims{3 * (10 + 12), 20}));
  EXPECT_EQ(set.all()[ids.layers[0].latent.kv_a].dims, (Dims{20 + 6, 64}));
  EXPECT_EQ(set.all()[ids.layers[0].output].dims, (Dims{64, 3 * 12}));
}

// Pairs that turn are adjacent in the published files, too, so that no row is moved.
TEST(LatentDecoder, HasThePublishedNamesAndLayout) {
  models::DecoderConfig c = latent_config();
  c.latent.q_lora_rank = 14;
  const FileLayout layout = models::published_layout(c);
  for (const auto& [ours, published] :
       {std::pair("attn.q_a_proj.weight", "q_a_proj.weight"), std::pair("attn.q_a_norm.weight", "q_a_layernorm.weight"),
        std::pair("attn.q_b_proj.weight", "q_b_proj.weight"),
        std::pair("attn.kv_a_proj.weight", "kv_a_proj_with_mqa.weight"),
        std::pair("attn.kv_a_norm.weight", "kv_a_layernorm.weight"),
        std::pair("attn.kv_b_proj.weight", "kv_b_proj.weight"), std::pair("attn.output_proj.weight", "o_proj.weight")})
    EXPECT_EQ(layout.name_of(std::string("layers.3.") + ours), std::string("model.layers.3.self_attn.") + published);
  const Parameter queries{"layers.3.attn.q_proj.weight", {8, 1}};
  const std::vector<float> rows{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(layout.rearranged(queries, rows), rows);
}

TEST(LatentDecoder, CountsEachProductByItsWidth) {
  models::DecoderConfig c = latent_config();
  const auto flops = [&](std::uint64_t of_queries) {
    const std::uint64_t products =
        of_queries + 64 * (20 + 6) + 20 * 3 * (10 + 12) + 3 * 12 * 64 + 3 * 64 * 128 + 64 * 100;
    return 2 * 32 * products + 2 * (2 * 16 * 16 / 2) * 3 * (16 + 12);
  };
  EXPECT_EQ(models::decoder_forward_flops(c), flops(64 * 3 * 16));
  c.latent.q_lora_rank = 14;
  EXPECT_EQ(models::decoder_forward_flops(c), flops(64 * 14 + 14 * 3 * 16));
}

TEST(LatentDecoder, RefusesWhatDoesNotGoWithIt) {
  const auto refusal = [](auto change) {
    models::DecoderConfig c = latent_config();
    change(c);
    try {
      c.validate();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refusal([](auto&) {}), "nothing");
  EXPECT_EQ(refusal([](auto& c) { c.d_model = 65; }), "nothing");  // no multiple of heads is needed
  EXPECT_EQ(refusal([](auto& c) { c.latent.kv_lora_rank = 0; }),
            "q_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim and rope_mscale_all_dim are of latent "
            "attention; set kv_lora_rank, or leave them 0");
  EXPECT_EQ(refusal([](auto& c) { c.latent.qk_rope_head_dim = 5; }),
            "kv_lora_rank = 20 is of latent attention, which needs qk_rope_head_dim, an even number of at least 2, "
            "qk_nope_head_dim and v_head_dim of at least 1, and q_lora_rank of at least 0; given are 5, 10, 12 and 0");
  EXPECT_NE(refusal([](auto& c) { c.latent.kv_lora_rank = 3; }).find("expected kv_lora_rank of at least 4"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.latent.q_lora_rank = 1; }).find("latents of 20 and 1 columns"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.kv_heads = 1; }).find("expected kv_heads = 0"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.head_dim = 16; }).find("expected head_dim = 0"), std::string::npos);
  EXPECT_EQ(refusal([](auto& c) { c.latent.mscale_all_dim = 1; }), "nothing") << "a preset's number without its yarn";
  const auto unserved = [&](auto change, const char* remedy) {
    const std::string text = refusal(change);
    EXPECT_EQ(text.rfind("latent attention (kv_lora_rank): ", 0), 0u) << text;
    EXPECT_NE(text.find(remedy), std::string::npos) << text;
  };
  unserved([](auto& c) { c.qkv_bias = true; }, "expected qkv_bias = false");
  unserved([](auto& c) { c.qk_norm = true; }, "expected qk_norm = false");
  unserved([](auto& c) { c.sliding_window = 4; }, "sliding_window");
  unserved([](auto& c) { c.attention_sinks = true; }, "expected attention_sinks = false");
  unserved([](auto& c) { c.attention_soft_cap = 5; }, "attention_soft_cap = 0");
  unserved([](auto& c) { c.precision.eight_bit_products = true; }, "another precision than fp8");
  unserved([](auto& c) { c.split.ranks = 2; }, "expected no tensor_parallel");
  unserved([](auto& c) { c.context.ranks = 2; }, "expected no context_parallel");
}

}  // namespace
}  // namespace assay::train
