// What each rank has of a decoder whose products are split, or whose sequences are shared out, and which cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace assay::models {
namespace {

using train::ParameterSet;

DecoderConfig model(std::int64_t rank, std::int64_t ranks, std::int64_t head_dim = 0) {
  DecoderConfig c;
  c.d_model = 48, c.d_ff = 80, c.layers = 3, c.heads = 8, c.kv_heads = 4, c.vocab_size = 152;
  c.batch_size = 2, c.context_length = 24, c.head_dim = head_dim;
  c.qkv_bias = c.qk_norm = c.attention_sinks = true;
  c.split = {.rank = rank, .ranks = ranks};
  return c;
}

// Why a configuration is not served after the change; "" where it is.
std::string refusal(DecoderConfig c, const auto& change) {
  change(c);
  try {
    c.validate();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    return e.what();
  }
  return "";
}

bool is_norm_of_heads(const std::string& name) { return name.find("_norm.") != std::string::npos; }

// By ranks, and columns of a head.
class SplitDecoderOf : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t>> {};

TEST_P(SplitDecoderOf, EveryElementIsOnOneRankOrOnAll) {
  const auto [ranks, head_dim] = GetParam();
  ParameterSet whole(DecoderConfig{}.precision);
  add_decoder_parameters(whole, model(0, 1, head_dim));
  std::vector<std::int64_t> next(whole.all().size());  // of the dimension that is split
  std::int64_t elements = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    ParameterSet own(DecoderConfig{}.precision);
    const DecoderConfig config = model(rank, ranks, head_dim);
    const DecoderParameters ids = add_decoder_parameters(own, config);
    const std::vector<DecoderPart> parts = decoder_parts(config, own, whole);
    ASSERT_EQ(parts.size(), whole.all().size());
    const train::ElementRange shared = decoder_shared_range(config, own, ids);
    for (ParameterSet::Id id = 0; id < parts.size(); ++id) {
      const train::Parameter &mine = own.all()[id], &all = whole.all()[parts[id].whole];
      EXPECT_EQ(mine.name, all.name);
      EXPECT_EQ(mine.init_std, all.init_std) << mine.name;
      const bool is_norm =
          mine.name.find("ln") == 0 || mine.name.find(".ln") != std::string::npos || is_norm_of_heads(mine.name);
      EXPECT_EQ(parts[id].dimension < 0, is_norm || ranks == 1) << mine.name;
      EXPECT_EQ(mine.offset >= shared.begin && mine.offset < shared.end, is_norm && ranks > 1) << mine.name;
      if (parts[id].dimension < 0) {
        elements += rank == 0 ? mine.elements() : 0;
        continue;
      }
      EXPECT_EQ(parts[id].first, next[parts[id].whole]) << mine.name;
      next[parts[id].whole] += parts[id].count;
      elements += mine.elements();
    }
  }
  EXPECT_EQ(elements, whole.parameter_count());
}
INSTANTIATE_TEST_SUITE_P(Ranks, SplitDecoderOf, testing::Combine(testing::Values(1, 2, 4), testing::Values(0, 10)));

// Where every rank has all rows, the gradients of the other norms are already the whole ones.
TEST(SplitDecoder, SumsNormsOfHeadsAloneWhereRowsAreEverywhere) {
  ParameterSet own(DecoderConfig{}.precision);
  DecoderConfig config = model(1, 2);
  config.split.sequence_parallel = false;
  const train::ElementRange shared = decoder_shared_range(config, own, add_decoder_parameters(own, config));
  for (const train::Parameter& p : own.all())
    EXPECT_EQ(p.offset >= shared.begin && p.offset < shared.end, is_norm_of_heads(p.name)) << p.name;
  ParameterSet without(DecoderConfig{}.precision);
  config.qk_norm = false;
  EXPECT_EQ(decoder_shared_range(config, without, add_decoder_parameters(without, config)).elements(), 0);
}

TEST(SplitDecoder, RefusesInWordsWhatDoesNotDivide) {
  const auto refusal_of = [](const auto& change) { return refusal(model(0, 4), change); };
  using testing::HasSubstr;
  EXPECT_EQ(refusal_of([](DecoderConfig&) {}), "");
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.heads = 6, c.kv_heads = 6; }),
              HasSubstr("over 4 ranks: heads 6 is not a multiple"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.kv_heads = 2; }), HasSubstr("kv_heads 2 is not a multiple"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.d_model = 50, c.head_dim = 6; }),
              HasSubstr("d_model 50 is not a multiple of 4; expected 48 or 52, or run.ranks 1 or 2"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.d_ff = 82; }), HasSubstr("d_ff 82 is not a multiple"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.vocab_size = 151; }), HasSubstr("vocab_size 151 is not a multiple"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.batch_size = 1, c.context_length = 25; }),
              HasSubstr("batch_size * context_length 25 is not a multiple"));
  EXPECT_EQ(refusal_of([](DecoderConfig& c) {
              c.batch_size = 1, c.context_length = 25;
              c.split.sequence_parallel = false;
            }),
            "");
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.tied_embeddings = true; }), HasSubstr("tied_embeddings = false"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.fused = false; }), HasSubstr("fused operations"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.split.rank = 4; }), HasSubstr("there is no rank 4"));
}

// ---- sequences that ranks share out (decoder_context.cpp)
DecoderConfig with_shared_context(std::int64_t rank, std::int64_t ranks) {
  DecoderConfig c = model(0, 1);
  c.context = {.rank = rank, .ranks = ranks};
  c.attention_sinks = false;
  return c;
}

TEST(SharedContext, EveryRankHasAsManyTokensAndOperations) {
  const DecoderConfig whole = with_shared_context(0, 1);
  std::vector<bool> is_there(24);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const DecoderConfig c = with_shared_context(rank, 3);
    EXPECT_EQ(c.rows(), whole.rows() / 3);
    EXPECT_EQ(3 * decoder_forward_flops(c), decoder_forward_flops(whole));
    EXPECT_EQ(c.chunk_begin(rank, 0) + c.chunk_begin(rank, 1), 5 * c.chunk_length()) << "as many keys to see";
    for (const int which : {0, 1})
      for (std::int64_t i = 0; i < c.chunk_length(); ++i) is_there.at(c.chunk_begin(rank, which) + i).flip();
  }
  EXPECT_EQ(is_there, std::vector<bool>(24, true));
}

TEST(SharedContext, RefusesInWordsWhatRanksCannotShareOut) {
  const auto refusal_of = [](const auto& change) { return refusal(with_shared_context(1, 4), change); };
  using testing::HasSubstr;
  EXPECT_EQ(refusal_of([](DecoderConfig&) {}), "");
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.context_length = 28; }),
              HasSubstr("context_length 28 does not make two chunks for each of them, as many tokens each; expected a "
                        "multiple of 8, 24 or 32"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.context.rank = 4; }), HasSubstr("there is no rank 4"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.split.ranks = 4; }), HasSubstr("no split of the products"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.experts.count = 4, c.experts.per_token = 2, c.experts.d_ff = 8; }),
              HasSubstr("without experts"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.flash = false; }), HasSubstr("attention = \"flash\""));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.attention_sinks = true; }), HasSubstr("attention_sinks = false"));
  EXPECT_EQ(refusal_of([](DecoderConfig& c) { c.rope_local_theta = 100, c.full_attention_every = 2; }), "");
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.accumulation_steps = 2; }), HasSubstr("accumulation_steps = 1"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.keep_logits = true; }), HasSubstr("kept logits"));
}

TEST(SharedContext, AModelWithoutOtherRanksIsRefused) {
  const DecoderConfig c = with_shared_context(0, 2);
  ParameterSet set(c.precision);
  const DecoderParameters ids = add_decoder_parameters(set, c);
  EXPECT_THROW(DecoderModel(c, set, ids), Error);
}

}  // namespace
}  // namespace assay::models
