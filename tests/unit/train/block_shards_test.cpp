// Who keeps which elements of a block, and where the parameters of a block lie.
#include "assay/parallel/block_shards.hpp"

#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <assay/parallel/sharded_blocks.hpp>
#include <map>

namespace assay::parallel {
namespace {

using models::DecoderConfig;
using train::ElementRange;
using train::ParameterBlock;
using train::ParameterSet;

// Groups of 64, 128 + 64, 100 (28 of gap) and 64 elements.
ParameterSet small_set() {
  ParameterSet set(workload::PrecisionPolicy{});
  set.add({{"a", {64}}});
  set.add({{"b", {128}}, {"c", {64}}});
  set.add({{"d", {100}}});
  set.add({{"e", {64}}});
  return set;
}

TEST(BlockShards, LieSideBySideWithGapsThatAreKnown) {
  const ParameterSet set = small_set();
  const BlockShards shards(set, {"block", {1, 2, 3, 4}}, 3);
  ASSERT_EQ(shards.parameters.size(), 4u);
  EXPECT_EQ(shards.parameters[1].elements, (ElementRange{128, 192}));
  EXPECT_EQ(shards.parameters[3].elements, (ElementRange{320, 384}));
  EXPECT_EQ(shards.gaps, (std::vector<ElementRange>{{292, 320}}));
  EXPECT_EQ(shards.shard_elements, 128);
  const BlockShards padded(set, {"block", {0, 3}}, 2);
  EXPECT_EQ(padded.gaps, (std::vector<ElementRange>{{164, 256}}));
  EXPECT_EQ(padded.elements(), 256);
}

TEST(BlockShards, TakeGroupsWhole) {
  const ParameterSet set = small_set();
  EXPECT_THROW(BlockShards(set, {"block", {0, 2}}, 2), Error);
  EXPECT_THROW(BlockShards(set, {"block", {1}}, 2), Error);
  EXPECT_THROW(BlockShards(set, {"block", {1, 3}}, 2), Error);
}

TEST(BlockShards, EveryElementOfADecoderHasOneKeeper) {
  DecoderConfig model;
  model.d_model = 48, model.d_ff = 80, model.layers = 3, model.heads = 2, model.vocab_size = 151;
  const models::LatentAttention latent{
      .kv_lora_rank = 10, .q_lora_rank = 9, .qk_nope_head_dim = 5, .qk_rope_head_dim = 4, .v_head_dim = 7};
  for (const auto& [ranks, attention] : std::initializer_list<std::pair<std::int64_t, models::LatentAttention>>{
           {1, {}}, {2, {}}, {3, {}}, {4, {}}, {7, {}}, {2, latent}, {3, latent}}) {
    model.latent = attention;
    ParameterSet set(model.precision), kept(model.precision);
    const models::DecoderParameters ids = add_decoder_parameters(set, model);
    ShardedBlocks blocks(0, ranks, {});
    blocks.divide(set, decoder_blocks(ids), kept);
    std::map<ParameterSet::Id, std::int64_t> next;  // by parameter: what has had a keeper
    for (std::size_t i = 0; i < blocks.count(); ++i) {
      EXPECT_EQ(blocks.shards(i).shard_elements % 64, 0);
      EXPECT_EQ(blocks.kept(i).elements(), blocks.shards(i).shard_elements);
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        for (const BlockShards::Held& held : blocks.shards(i).held_by(rank)) {
          EXPECT_EQ(held.first, next[held.parameter]) << set.all()[held.parameter].name;
          EXPECT_GT(held.elements(), 0);
          next[held.parameter] += held.elements();
        }
    }
    ASSERT_EQ(next.size(), set.all().size());
    for (const auto& [id, elements] : next) EXPECT_EQ(elements, set.all()[id].elements());
    EXPECT_EQ(kept.arena_elements() * ranks, set.parameter_count() + blocks.padding_elements());
  }
}

// What plugins/fsdp/README.md states.
TEST(ShardedBlocks, HoldTwoLayersAndTheGradientsOfTwoAtATime) {
  DecoderConfig model;
  model.d_model = 128, model.d_ff = 512, model.layers = 8, model.heads = 4, model.vocab_size = 1000;
  model.batch_size = 2, model.context_length = 64;
  for (const workload::PrecisionPolicy& policy :
       {workload::PrecisionPolicy{}, workload::precision_policy("bf16", "cpu")}) {
    model.precision = policy;
    ParameterSet set(policy), kept(policy);
    const models::DecoderParameters ids = add_decoder_parameters(set, model);
    ShardedBlocks blocks(1, 2, {});
    blocks.divide(set, decoder_blocks(ids), kept);
    const models::DecoderModel planned(model, set, ids, {&blocks, &kept});
    const auto bytes = [](std::int64_t elements, auto... types) {
      return static_cast<std::size_t>(elements) * (compute::size_of(types) + ...);
    };
    const std::int64_t layer = 3 * 128 * 512 + 4 * 128 * 128, norms = 17 * 128;
    EXPECT_EQ(blocks.message_bytes(),
              2 * bytes(layer, policy.activation, policy.gradient) + bytes(norms, policy.parameter, policy.gradient));
  }
}

// What several micro-batches add to that: the part that a reduction brings, or whole gradients of all blocks. A tied
// head is the embedding, whose gradients wait for its other end.
TEST(ShardedBlocks, HoldWhatMicroBatchesAddUp) {
  DecoderConfig model;
  model.d_model = 128, model.d_ff = 512, model.layers = 8, model.heads = 4, model.vocab_size = 1000;
  model.batch_size = 2, model.context_length = 64, model.accumulation_steps = 4;
  const std::int64_t layer = 3 * 128 * 512 + 4 * 128 * 128, norms = 17 * 128, matrix = 1000 * 128;
  for (const bool tied : {false, true})
    for (const bool each : {true, false}) {
      SCOPED_TRACE(std::string(tied ? "tied " : "") + (each ? "each" : "last"));
      model.tied_embeddings = tied;
      ParameterSet set(model.precision), kept(model.precision);
      const models::DecoderParameters ids = add_decoder_parameters(set, model);
      ShardedBlocks blocks(1, 2, {.micro_batches = 4, .reduce_every_micro_batch = each});
      blocks.divide(set, decoder_blocks(ids), kept);
      EXPECT_EQ(blocks.count(), tied ? 10u : 11u);
      const models::DecoderModel planned(model, set, ids, {&blocks, &kept});
      const std::int64_t whole = (tied ? 1 : 2) * matrix + 8 * layer + norms;
      const std::int64_t elements =
          each ? 4 * layer + 2 * norms + layer / 2 + (tied ? matrix : 0) : 2 * layer + norms + whole;
      EXPECT_EQ(blocks.message_bytes(), 4 * static_cast<std::size_t>(elements));
    }
}

TEST(ShardedBlocks, DoNotGoWithASideLane) {
  DecoderConfig model;
  model.d_model = 32, model.d_ff = 64, model.layers = 1, model.heads = 2, model.side_lane = true;
  ParameterSet set(model.precision), kept(model.precision);
  const models::DecoderParameters ids = add_decoder_parameters(set, model);
  ShardedBlocks blocks(0, 2, {});
  blocks.divide(set, decoder_blocks(ids), kept);
  EXPECT_THROW(models::DecoderModel(model, set, ids, {&blocks, &kept}), Error);
}

}  // namespace
}  // namespace assay::parallel
