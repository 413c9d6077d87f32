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
              HasSubstr("d_model 50 is not a multiple of 4; expected 48 or 52, or run.ranks / replicas of 1 or 2"));
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

// ---- rows in chunks

// By batch, sequence_parallel, and chunks.
class SplitRowsOf : public testing::TestWithParam<std::tuple<std::int64_t, bool, std::int64_t>> {
 protected:
  static DecoderConfig config(std::int64_t rank) {
    DecoderConfig c = model(rank, 4);
    std::tie(c.batch_size, c.split.sequence_parallel, c.split.communication_chunks) = GetParam();
    return c;
  }
  // Which rows of its memory a tensor is.
  static RowRange in(const std::vector<float>& memory, const compute::Tensor& t) {
    return {static_cast<const float*>(t.data) - memory.data(), t.dim(0)};
  }
};

TEST_P(SplitRowsOf, EveryRowIsInOneChunkAndOnOneRankOrOnAll) {
  const std::int64_t n = config(0).rows();
  std::vector<float> memory(static_cast<std::size_t>(n));
  const compute::Tensor all(memory.data(), compute::DType::f32, {n});
  std::vector<int> ranks_of(memory.size());
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const SplitRows rows(config(rank));
    const compute::Tensor kept(memory.data(), compute::DType::f32, {config(rank).own_rows()});
    ASSERT_EQ(rows.chunks().size(), static_cast<std::size_t>(config(rank).split.communication_chunks));
    std::int64_t next = 0, next_kept = 0;
    for (const RowRange& chunk : rows.chunks()) {
      EXPECT_EQ(chunk.first, next);
      EXPECT_GT(chunk.count, 0);
      next += chunk.count;
      EXPECT_TRUE(chunk.first % 24 == 0 || !rows.are_sequences());
      const RowRange own = in(memory, rows.own(all, chunk)), of_kept = in(memory, rows.kept(kept, chunk));
      EXPECT_EQ(of_kept.first, next_kept);
      EXPECT_EQ(of_kept.count, own.count);
      next_kept += of_kept.count;
      EXPECT_GE(own.first, chunk.first);
      EXPECT_LE(own.first + own.count, chunk.first + chunk.count);
      for (std::int64_t row = own.first; row < own.first + own.count; ++row) ++ranks_of[static_cast<std::size_t>(row)];
    }
    EXPECT_EQ(next, n);
    EXPECT_EQ(next_kept, config(rank).own_rows());
  }
  EXPECT_EQ(ranks_of, std::vector<int>(memory.size(), config(0).split.sequence_parallel ? 1 : 4));
}
INSTANTIATE_TEST_SUITE_P(Chunks, SplitRowsOf,
                         testing::Combine(testing::Values(1, 2, 5), testing::Bool(), testing::Values(1, 2, 3, 5)));

TEST(SplitRows, AreSequencesWhereThereAreAsManyAsChunks) {
  DecoderConfig c = model(0, 4);
  for (const std::int64_t chunks : {1, 2, 3}) {
    c.split.communication_chunks = chunks;
    EXPECT_EQ(SplitRows(c).are_sequences(), chunks <= 2);
  }
}

TEST(SplitRows, RefuseMoreChunksThanRowsOfARank) {
  const auto refusal_of = [](const auto& change) { return refusal(model(0, 4), change); };
  EXPECT_EQ(refusal_of([](DecoderConfig& c) { c.split.communication_chunks = 12; }), "");
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.split.communication_chunks = 13; }),
              testing::HasSubstr("communication_chunks 13 of 48 rows, of which a rank has 12; expected 1 to 12"));
  EXPECT_THAT(refusal_of([](DecoderConfig& c) { c.split.communication_chunks = 0; }), testing::HasSubstr("1 to 2"));
  EXPECT_EQ(refusal_of([](DecoderConfig& c) {
              c.split.communication_chunks = 48;
              c.split.sequence_parallel = false;
            }),
            "");
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
