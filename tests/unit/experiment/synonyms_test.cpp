#include "experiment/synonyms.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace assay::host::experiment {
namespace {

using Names = std::vector<std::string>;

const Names settings{"measure.warmup", "measure.steps", "measure.sync", "run.device", "run.ranks", "run.seed"};

Names with_settings(Names params) {
  params.insert(params.end(), settings.begin(), settings.end());
  return params;
}

TEST(Synonym, IsTheNameThatTheWorkloadHas) {
  EXPECT_EQ(synonym("nhead", {"d_model", "heads"}), "heads");
  EXPECT_EQ(synonym("nhead", {"d_model", "num_heads"}), "num_heads");
  EXPECT_EQ(synonym("nhead", {"d_model"}), std::nullopt);
  EXPECT_EQ(synonym("tensor_parallel_size", {"layers", "run.ranks"}), "run.ranks");
  EXPECT_EQ(synonym("reshard_after_forward", {"layers", "reshard"}), "reshard");
  EXPECT_EQ(synonym("gradient_accumulation_steps", {"accumulation_steps"}), "accumulation_steps");
  for (const char* name : {"sequence_length", "context_length", "seq"})
    EXPECT_EQ(synonym("seq_len", {"size", name}), name);
  EXPECT_EQ(synonym("model_size", {"preset"}), "preset");
  EXPECT_EQ(synonym("model_size", {"preset", "size"}), "size");
}

TEST(Synonym, OfTheNamesThatTheEncoderDecoderReportHas) {
  const Names known = with_settings({"preset", "d_model", "heads", "encoder_layers", "decoder_layers", "d_ff",
                                     "sequence_length", "batch_size", "amp", "execution", "dataset", "data_dir",
                                     "num_samples", "num_shards", "workers", "lr"});
  const std::vector<std::pair<const char*, const char*>> meant{{"--d-model", "d_model"},
                                                               {"--nhead", "heads"},
                                                               {"--num-encoder-layers", "encoder_layers"},
                                                               {"--num-decoder-layers", "decoder_layers"},
                                                               {"--dim-feedforward", "d_ff"},
                                                               {"--seq-len", "sequence_length"},
                                                               {"--batch-size", "batch_size"},
                                                               {"--epochs", "measure.steps"},
                                                               {"--warmup-epochs", "measure.warmup"},
                                                               {"--no-amp", "amp"},
                                                               {"--data-dir", "data_dir"},
                                                               {"--num-shards", "num_shards"},
                                                               {"--nproc_per_node", "run.ranks"},
                                                               {"--single", "run.ranks"},
                                                               {"--full", "dataset"},
                                                               {"--disk", "data_dir"},
                                                               {"--compile", "execution"},
                                                               {"--device", "run.device"}};
  for (const auto& [word, key] : meant) EXPECT_EQ(synonym(word, known), key) << word;
}

TEST(Synonym, OfTheNamesThatPublishedConfigurationsAndMuonHave) {
  const std::pair<const char*, const char*> meant[] = {{"num_key_value_heads", "kv_heads"},
                                                       {"rms_norm_eps", "norm_eps"},
                                                       {"rope_type", "rope_scaling"},
                                                       {"original_max_position_embeddings", "rope_original_context"},
                                                       {"window_size", "sliding_window"},
                                                       {"attn_logit_softcapping", "attention_soft_cap"},
                                                       {"final_logit_softcapping", "logit_soft_cap"},
                                                       {"norm_topk_prob", "normalized_weights"},
                                                       {"tie_word_embeddings", "tied_embeddings"},
                                                       {"ns_steps", "muon_steps"},
                                                       {"cp_size", "run.ranks"},
                                                       {"hidden_act", "gate_activation"}};
  for (const auto& [word, key] : meant) EXPECT_EQ(synonym(word, {"size", key, "window"}), key) << word;
  EXPECT_EQ(synonym("sliding_window_size", {"window"}), "window");
  EXPECT_EQ(synonym("size", {"model"}), "model");
}

TEST(Synonym, InASectionIsAKeyOfIt) {
  EXPECT_EQ(synonym("epochs", {"warmup", "steps"}), "steps");
  EXPECT_EQ(synonym("nproc_per_node", {"device", "ranks"}), "ranks");
}

TEST(Synonym, PrecisionHasTheNameOfTheWorkload) {
  EXPECT_EQ(synonym("dtype", {"precision"}), "precision");
  EXPECT_EQ(synonym("precision", {"dtype"}), "dtype");
  EXPECT_EQ(synonym("use_amp", {"precision"}), "precision");
  EXPECT_EQ(synonym("use_amp", {"amp", "precision"}), "amp");
}

TEST(MeantKey, IsASynonymBeforeASlip) {
  EXPECT_EQ(meant_key("seq_len", {"seq_lane", "context_length"}), "context_length");
  EXPECT_EQ(meant_key("stpes", {"steps"}), "steps");
  EXPECT_EQ(meant_key("foo", {"steps"}), std::nullopt);
  EXPECT_EQ(did_you_mean_key("nhead", {"heads"}), "; did you mean 'heads'?");
  EXPECT_EQ(did_you_mean_key("--", {"heads"}), "");
  EXPECT_EQ(did_you_mean_key("", {"heads"}), "");
}

}  // namespace
}  // namespace assay::host::experiment
