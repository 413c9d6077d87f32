// Which rank of a pipeline has what, and what memory it takes. No device is opened.
#include <assay/models/decoder_pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace assay::models {
namespace {

DecoderConfig in_stages(std::int64_t ranks, std::int64_t virtual_stages, std::int64_t layers, std::int64_t words = 64) {
  DecoderConfig c;
  c.vocab_size = words;
  c.batch_size = 2;
  c.context_length = 16;
  c.d_model = 32, c.d_ff = 64, c.layers = layers, c.heads = 2;
  c.accumulation_steps = 4;
  c.precision = workload::precision_policy("fp32", "cpu");
  c.stages = {.rank = 0, .ranks = ranks, .virtual_stages = virtual_stages};
  return c;
}

DecoderConfig of_rank(DecoderConfig c, std::int64_t rank) {
  c.stages.rank = rank;
  return c;
}

std::string refusal(const DecoderConfig& c) {
  try {
    c.validate();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    return e.what();
  }
}

TEST(DecoderStages, HaveLayersByWork) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(layers_of_stages(in_stages(2, 1, 5)), (Layers{3, 2}));
  EXPECT_EQ(layers_of_stages(in_stages(2, 2, 10)), (Layers{3, 3, 2, 2}));
  // A head of about four layers' work: 10,240 multiply-adds by token and layer, and scores.
  EXPECT_EQ(layers_of_stages(in_stages(2, 1, 8, 1300)), (Layers{6, 2}));
  EXPECT_EQ(layers_of_stages(in_stages(3, 1, 3, 100'000)), (Layers{1, 1, 1}));
  DecoderConfig evenly = in_stages(2, 1, 8, 1300);
  evenly.stages.balance = StageBalance::layers;
  EXPECT_EQ(layers_of_stages(evenly), (Layers{4, 4}));
}

// The head's product, 32 x 1300 multiply-adds by token, over a layer's: 4 * 32^2 + 3 * 32 * 64 of products and
// 16 * 64 / 2 of the scores and their sums.
TEST(DecoderStages, CountTheHeadInLayers) {
  EXPECT_DOUBLE_EQ(stage_division(in_stages(2, 1, 8, 1300)).head_layers, 32 * 1300.0 / (10'240 + 512));
  // A layer that sees all counts as the mean of it and one with a window.
  DecoderConfig c = in_stages(2, 1, 8, 1300);
  c.sliding_window = 1, c.full_attention_every = 2;
  EXPECT_DOUBLE_EQ(stage_division(c).head_layers, 32 * 1300.0 / (10'240 + (512 + 64) / 2.0));
}

std::string text_of(const StageDivision& d) {
  return std::to_string(d.layers) + " layers, " + std::to_string(d.ranks) + " ranks, " +
         std::to_string(d.virtual_stages) + " virtual stages, a head of " + std::to_string(d.head_layers);
}

std::vector<StageDivision> divisions(StageBalance balance) {
  std::vector<StageDivision> all;
  for (const std::int64_t ranks : {1, 2, 3, 4, 7})
    for (const std::int64_t virtual_stages : {1, 2, 3})
      for (const std::int64_t more : {0, 1, 2, 3, 5, 8, 13, 40})
        for (const double head : {0.0, 0.3, 1.0, 2.6, 9.5})
          all.push_back({ranks * virtual_stages + more, ranks, virtual_stages, head, balance});
  return all;
}

// The least that a division of whole layers allows: the smallest `most` at which ranks have places for all layers.
double least_most(const StageDivision& d) {
  const auto places = [&](double most) {
    std::int64_t sum = 0;
    for (std::int64_t rank = 0; rank < d.ranks; ++rank) {
      const double beside = rank + 1 == d.ranks ? d.head_layers : 0;
      const auto fit = static_cast<std::int64_t>(most - beside + 1e-9);
      if (fit < d.virtual_stages) return std::int64_t{-1};  // a rank's stages have a layer each
      sum += fit;
    }
    return sum;
  };
  double least = 1e9;
  for (std::int64_t layers = 1; layers <= d.layers; ++layers)
    for (const double most : {static_cast<double>(layers), static_cast<double>(layers) + d.head_layers})
      if (places(most) >= d.layers) least = std::min(least, most);
  return least;
}

TEST(StageLayers, ByWorkAreAsEvenOverRanksAsLayersAllow) {
  for (const StageDivision& d : divisions(StageBalance::work)) {
    const std::vector<std::int64_t> layers = layers_of_stages(d);
    ASSERT_EQ(layers.size(), static_cast<std::size_t>(d.ranks * d.virtual_stages));
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}), d.layers) << text_of(d);
    EXPECT_GE(*std::min_element(layers.begin(), layers.end()), 1) << text_of(d);
    const std::vector<double> work = work_of_ranks(d);
    EXPECT_NEAR(*std::max_element(work.begin(), work.end()), least_most(d), 1e-9) << text_of(d);
    EXPECT_NEAR(std::accumulate(work.begin(), work.end(), 0.0), static_cast<double>(d.layers) + d.head_layers, 1e-9);
  }
}

TEST(StageLayers, ByLayersDifferByOne) {
  for (const StageDivision& d : divisions(StageBalance::layers)) {
    const std::vector<std::int64_t> layers = layers_of_stages(d);
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}), d.layers) << text_of(d);
    EXPECT_TRUE(std::is_sorted(layers.rbegin(), layers.rend())) << text_of(d);
    EXPECT_LE(layers.front() - layers.back(), 1) << text_of(d);
  }
}

// xl with GPT-2's vocabulary, whose head is about two of its layers. Interleaved, a rank's sum counts, though a stage
// of another rank have less.
TEST(StageLayers, OfInterleavedRanksTheSumCounts) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(layers_of_stages({48, 2, 1, 2}), (Layers{25, 23}));
  EXPECT_EQ(layers_of_stages({48, 2, 2, 2}), (Layers{13, 13, 12, 10}));
  EXPECT_EQ(work_of_ranks({48, 2, 2, 2}), (std::vector<double>{25, 25}));
  EXPECT_EQ(layers_of_stages({6, 2, 2, 1.2}), (Layers{2, 1, 2, 1}));
  EXPECT_EQ(layers_of_stages({11, 3, 2, 1.5}), (Layers{2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(work_of_ranks({11, 3, 2, 1.5}), (std::vector<double>{4, 4, 4.5}));
}

TEST(StageLayers, AreAtLeastAsManyAsStages) {
  for (const StageBalance balance : {StageBalance::work, StageBalance::layers})
    EXPECT_THROW(layers_of_stages({5, 3, 2, 0.5, balance}), Error);
}

TEST(DecoderStages, HaveEachParameterOfTheWholeModelOnce) {
  for (const std::int64_t virtual_stages : {1, 2}) {
    const DecoderConfig c = in_stages(3, virtual_stages, 7);
    DecoderConfig unshared = c;
    unshared.stages = {};
    train::ParameterSet whole(c.precision);
    add_decoder_parameters(whole, unshared);
    std::set<std::string> names;
    std::int64_t count = 0;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      train::ParameterSet own(c.precision);
      add_chunk_parameters(own, of_rank(c, rank));
      for (const train::Parameter& p : own.all()) EXPECT_TRUE(names.insert(p.name).second) << p.name;
      count += own.parameter_count();
    }
    EXPECT_EQ(names.size(), whole.all().size());
    EXPECT_EQ(count, whole.parameter_count());
    const std::vector<std::int64_t> ranks = ranks_of_parameters(c, whole);
    for (std::size_t id = 0; id < ranks.size(); ++id) {
      const std::string& name = whole.all()[id].name;
      EXPECT_GE(ranks[id], 0) << name;
      if (name == "token_embeddings.weight") {
        EXPECT_EQ(ranks[id], 0);
      }
      if (name == "lm_head.weight" || name == "ln_final.weight") {
        EXPECT_EQ(ranks[id], 2);
      }
    }
  }
}

TEST(DecoderStages, OfInterleavedRanksAreEveryRanksth) {
  const DecoderConfig c = of_rank(in_stages(2, 2, 4), 1);
  const DecoderConfig first = config_of_chunk(c, 0), second = config_of_chunk(c, 1);
  EXPECT_EQ(first.stage.first_layer, 1);
  EXPECT_FALSE(first.stage.has_embedding || first.stage.has_head);
  EXPECT_EQ(second.stage.first_layer, 3);
  EXPECT_TRUE(second.stage.has_head);
  EXPECT_FALSE(first.is_pipelined());
}

// A layer's window and rotation are those of its place in the whole model.
TEST(DecoderStages, KnowThePlaceOfTheirLayers) {
  DecoderConfig c = of_rank(in_stages(2, 1, 5), 1);
  c.sliding_window = 4, c.full_attention_every = 3;
  const DecoderConfig chunk = config_of_chunk(c, 0);
  ASSERT_EQ(chunk.stage.first_layer, 3);
  EXPECT_EQ(chunk.window_of(0), 4);
  EXPECT_EQ(chunk.window_of(1), 4);
  EXPECT_EQ(c.window_of(2), 0);
}

// The first rank keeps as many micro-batches as there are ranks, the last one keeps one.
TEST(DecoderPipeline, HasMemoryForTheMicroBatchesThatItKeeps) {
  const auto bytes_of = [](const DecoderConfig& c) {
    train::ParameterSet set(c.precision);
    const std::vector<DecoderParameters> chunks = add_chunk_parameters(set, c);
    return DecoderPipeline(c, set, chunks).activation_bytes();
  };
  struct Bytes {
    std::size_t of_micro_batch, shared;
  };
  const auto chunk_bytes = [](const DecoderConfig& c) {
    train::ParameterSet set(c.precision);
    const std::vector<DecoderParameters> chunks = add_chunk_parameters(set, c);
    const DecoderModel chunk(config_of_chunk(c, 0), set, chunks[0]);
    return Bytes{chunk.activation_bytes(), chunk.plan().borrowed_bytes()};
  };
  const DecoderConfig c = in_stages(3, 1, 6);
  constexpr std::size_t message = 2 * 16 * 32 * 4;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const DecoderConfig own = of_rank(c, rank);
    const train::PipelineSchedule schedule(pipeline_shape(own), rank);
    const auto messages = static_cast<std::size_t>(schedule.receive_places() + 2);
    const Bytes bytes = chunk_bytes(own);
    EXPECT_EQ(bytes_of(own),
              static_cast<std::size_t>(3 - rank) * bytes.of_micro_batch + bytes.shared + messages * message + 256)
        << "rank " << rank;
  }
  // Made again, all that is kept of a layer is its input; tables of the rotation are kept beside.
  DecoderConfig made_again = of_rank(c, 1);
  made_again.checkpointing = true;
  const Bytes kept = chunk_bytes(of_rank(c, 1)), inputs = chunk_bytes(made_again);
  const auto layers = static_cast<std::size_t>(config_of_chunk(made_again, 0).layers);
  EXPECT_EQ(inputs.of_micro_batch, layers * message + 2 * 16 * 8 * 4);
  EXPECT_GT(kept.of_micro_batch, 3 * inputs.of_micro_batch);
  EXPECT_GT(inputs.shared, message);
}

TEST(DecoderStages, RefuseWhatTheyCannotShare) {
  EXPECT_EQ(refusal(in_stages(4, 1, 4)), "");
  EXPECT_NE(refusal(in_stages(4, 1, 3)).find("3 layers are fewer than the 4 stages"), std::string::npos);
  EXPECT_NE(refusal(in_stages(2, 1, 1)).find("1 layer is fewer than the 2 stages"), std::string::npos);
  EXPECT_NE(refusal(in_stages(2, 4, 6)).find("layers of at least 8, fewer virtual_stages, or fewer ranks"),
            std::string::npos);
  DecoderConfig tied = in_stages(2, 1, 4);
  tied.tied_embeddings = true;
  EXPECT_NE(refusal(tied).find("expected tied_embeddings = false"), std::string::npos);
  DecoderConfig odd = in_stages(2, 2, 4);
  odd.accumulation_steps = 3;
  EXPECT_NE(refusal(odd).find("expected accumulation_steps = 2 or 4 in place of 3"), std::string::npos);
  DecoderConfig kept = in_stages(2, 1, 4);
  kept.fused = false;
  EXPECT_NE(refusal(kept).find("fused operations"), std::string::npos);
}

}  // namespace
}  // namespace assay::models
