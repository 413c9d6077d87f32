// What a decoder is made of: its sizes, its blocks and its attention, and what one rank has of it where ranks share it.
// decoder.hpp has the model.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/experts.hpp>
#include <assay/models/latent_attention.hpp>
#include <assay/train/pipeline_schedule.hpp>
#include <assay/workload/precision.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace assay::models {

// A rank's part of a decoder whose products are split: queries, keys and values by heads, the feed-forward by its
// hidden states, the embedding by columns of the width, the head by words of the vocabulary. Weights of norms are whole
// on every rank.
struct DecoderSplit {
  std::int64_t rank = 0, ranks = 1;
  // Norms and residual stream of a rank are those of its N / ranks rows, and their outputs are gathered before a
  // product. Otherwise every rank has all rows of them, and the products' outputs are summed everywhere.
  bool sequence_parallel = true;
  // Rows are exchanged in so many chunks, so that a chunk's exchange runs beside the products of the next one
  // (split_rows.hpp).
  std::int64_t communication_chunks = 1;
};

// A rank's part of every sequence where the ranks share them out ("context parallel"). Of the T tokens in 2 R chunks of
// L = T / 2 R, rank r has chunks r and 2 R - 1 - r, so that causal attention is as much work on every rank. Its rows
// are [batch, (chunk r | chunk 2 R - 1 - r), L].
struct DecoderContext {
  std::int64_t rank = 0, ranks = 1;
};

// A rank's part of a decoder whose layers are shared out in stages, one behind the other ("pipeline parallel",
// decoder_pipeline.hpp): of ranks * virtual_stages stages rank r has r, r + ranks, r + 2 ranks, ...
enum class StageBalance : std::int32_t { work, layers };  // what ranks have equally much of (stage_layers.hpp)
struct DecoderStages {
  std::int64_t rank = 0, ranks = 1, virtual_stages = 1;
  StageBalance balance = StageBalance::work;
  train::Receives receives = train::usual_receives;
};

// What a model that is one stage has beside its `layers`. Without the embedding its input is given, without the head
// the residual stream behind its last layer is its result.
struct DecoderStage {
  std::int64_t first_layer = 0;  // of the whole model
  bool has_embedding = true, has_head = true;
  bool is_whole() const { return has_embedding && has_head; }
};

struct DecoderConfig {
  std::int64_t vocab_size = 10'000;
  std::int64_t batch_size = 4;
  std::int64_t context_length = 512;  // of a whole sequence, whoever has its tokens
  // Lengths of the documents that fill a sequence, the same in each, whose tokens do not see each other
  // (documents.hpp); empty: a sequence is one.
  std::vector<std::int64_t> documents = {};
  std::int64_t d_model = 768, d_ff = 3072, layers = 12, heads = 12;
  std::int64_t kv_heads = 0;     // of keys and values, a divisor of heads; 0: as many as heads
  std::int64_t head_dim = 0;     // columns of a head, even; 0: d_model / heads
  bool qkv_bias = false;         // the products of q, k and v add a bias
  bool qk_norm = false;          // RMSNorm of each head of queries and of keys before the rotation (Qwen3)
  bool output_bias = false;      // the product behind attention adds a bias
  bool tied_embeddings = false;  // the output head's weights are the embedding's
  double rope_theta = 10'000.0;  // the base of the rotation's wavelengths
  compute::RotaryScaling rope_scaling;
  double norm_eps = 1e-5;       // of every RMSNorm
  bool post_norms = false;      // each branch ends with its own RMSNorm, before it is added
  bool norms_from_one = false;  // an RMSNorm multiplies by 1 + its weight
  compute::Activation gate_activation = compute::Activation::silu;  // of the feed-forward; or gelu_tanh
  bool scaled_embeddings = false;                                   // times the root of d_model
  double query_pre_attn_scalar = 0;  // scores are divided by its root; 0: the head's columns
  // A query sees its own token and the sliding_window - 1 before it; 0: all before it. Every so manyth layer, the last
  // of each full_attention_every, sees all of them whatever the window (gpt-oss: 2, Gemma 3: 6); 0: none does.
  std::int64_t sliding_window = 0, full_attention_every = 0;
  double rope_local_theta = 0;      // of layers beside the full ones, whose rotation is not scaled; 0: as of all others
  bool attention_sinks = false;     // each head of a layer has a score more, which is learned and has no value
  double attention_soft_cap = 0.0;  // scores become cap * tanh(score / cap); 0: they stay
  double logit_soft_cap = 0.0;      // the same of the head's logits
  LatentAttention latent;           // any(): in the place of products of queries, keys and values
  ExpertsConfig experts;
  workload::PrecisionPolicy precision;
  // fused: packed query-key-value and gate-up products, residual + norm, SwiGLU and loss as one operation each.
  // Otherwise one operation each, as a framework without a compiler runs them.
  // Products of 8 bits are in the fused form alone.
  bool fused = true;
  bool flash = true;  // tiled attention; otherwise the score matrix is made
  // Without flash: so many rows of queries at a time (naive_attention.hpp), made again in backward. 0: all at once,
  // kept.
  std::int64_t score_rows = 0;
  // The loss in so many parts of the batch's tokens (decoder_head.cpp): one part's logits are in memory at a time, and
  // forward makes the head's gradients, too. 1: whole. With a backward only.
  std::int64_t loss_chunks = 1;
  // Micro-batches of batch_size sequences whose gradients are added up before an update. With more than one the plan
  // does not borrow the gradient arena, which holds sums from the first one on.
  std::int64_t accumulation_steps = 1;
  bool backward = true;        // plan for a backward pass; the plan then borrows the gradient arena
  bool checkpointing = false;  // keep each layer's input alone and recompute the rest in backward
  bool keep_outputs = false;   // fused: what norms and SwiGLU make is kept for backward, not made again there
  // Fused: the product at the end of a branch adds the residual stream, which the norm behind it then has not to. Of a
  // GPU, where the product reads what it adds on its way.
  bool residual_in_products = false;
  bool keep_logits = false;  // a copy of the logits survives the step
  // Fused only: gradients of matrices are made on the backend's side lane, beside the chain of gradients by
  // activations. Costs the memory of what they read, which must live longer.
  bool side_lane = false;
  DecoderSplit split;      // over several ranks: of fused steps with a backward
  DecoderStages stages;    // over several ranks: of micro-batches, without experts, a split or tied embeddings
  DecoderStage stage;      // of a model that is one of them
  DecoderContext context;  // over several ranks: of tiled attention and one micro-batch, without experts and a split

  std::int64_t own_context() const { return context_length / context.ranks; }  // tokens of a sequence on this rank
  std::int64_t rows() const { return batch_size * own_context(); }             // tokens of a micro-batch, on this rank
  std::int64_t step_rows() const { return accumulation_steps * rows(); }       // and of a step
  std::int64_t head_width() const {                                            // of a query and a key
    return latent.any() ? latent.key_width() : head_dim > 0 ? head_dim : d_model / heads;
  }
  std::int64_t value_width() const { return latent.any() ? latent.v_head_dim : head_width(); }
  std::int64_t rotated_width() const { return latent.any() ? latent.qk_rope_head_dim : head_width(); }
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t q_width() const { return heads * head_width(); }           // of a token's queries
  std::int64_t attention_width() const { return heads * value_width(); }  // and of attention's result
  std::int64_t kv_width() const { return key_heads() * head_width(); }    // of a token's keys, and of its values
  std::int64_t qkv_width() const {  // of the product that they all, or the latents that they are made of, come from
    return latent.any() ? latent.query_width(heads) + latent.down_width() : q_width() + 2 * kv_width();
  }
  // Elements of the matrices of a layer's attention. Each takes one multiply-add per token.
  std::int64_t attention_elements() const {
    return d_model * attention_width() + (latent.any() ? latent.elements(d_model, heads) : d_model * qkv_width());
  }
  // What is here of a split model: all of it where there is one rank.
  bool is_split() const { return split.ranks > 1; }
  bool is_pipelined() const { return stages.ranks > 1; }
  // Of sequences that ranks share out: tokens in a chunk, and where the first or the second chunk of a rank begins.
  bool shares_context() const { return context.ranks > 1; }
  std::int64_t chunk_length() const { return context_length / (2 * context.ranks); }
  std::int64_t chunk_begin(std::int64_t rank, int which) const {
    return (which == 0 ? rank : 2 * context.ranks - 1 - rank) * chunk_length();
  }
  std::int64_t own_heads() const { return heads / split.ranks; }
  std::int64_t own_key_heads() const { return key_heads() / split.ranks; }
  std::int64_t own_width() const { return d_model / split.ranks; }  // of the embedding
  std::int64_t own_q_width() const { return q_width() / split.ranks; }
  std::int64_t own_attention_width() const { return attention_width() / split.ranks; }
  std::int64_t own_kv_width() const { return kv_width() / split.ranks; }
  std::int64_t own_qkv_width() const { return qkv_width() / split.ranks; }
  std::int64_t own_d_ff() const { return d_ff / split.ranks; }
  bool is_like_gemma() const {
    return post_norms || norms_from_one || scaled_embeddings || gate_activation != compute::Activation::silu;
  }
  double query_scalar() const {
    return query_pre_attn_scalar > 0 ? query_pre_attn_scalar : static_cast<double>(head_width());
  }
  // The root mean square of scores whose queries and keys have elements of size one, as norms and drawn weights make
  // them.
  double usual_score() const;
  // By how much attention makes roundings of queries and keys larger, relative, at least 1. A score that is off by e of
  // itself makes its probability off by e times the score, and the slope 1 - tanh(score / cap)^2 of a soft cap off by
  // 2 e score / cap.
  double rounding_growth_of_scores() const;
  // The same of norms of few columns as well: of a short head both its error and the gradient grow with 1 / length.
  double rounding_growth_of_attention() const;
  // The same of the logits' cap, of logits as large as drawn weights make them.
  double rounding_growth_of_logits() const;
  double usual_logit() const;  // the root mean square of logits
  // Beside the root of query_scalar(): of latent attention with yarn. Another rotation leaves a preset's number unread.
  float score_factor() const {
    const bool is_read = rope_scaling.kind == compute::RotaryScalingKind::yarn && rope_scaling.factor > 1;
    const double m =
        latent.mscale_all_dim > 0 && is_read ? 1 + 0.1 * latent.mscale_all_dim * std::log(rope_scaling.factor) : 1;
    return static_cast<float>(m * m);
  }
  // Whether a layer sees everything whatever the window of those beside it.
  bool sees_all(std::int64_t layer) const {
    return full_attention_every > 0 && (stage.first_layer + layer + 1) % full_attention_every == 0;
  }
  bool rotates_locally(std::int64_t layer) const { return rope_local_theta > 0 && !sees_all(layer); }
  // The window of a layer where it hides a token; 0: none.
  std::int64_t window_of(std::int64_t layer) const {
    return sees_all(layer) || sliding_window >= context_length ? 0 : sliding_window;
  }
  bool has_experts(std::int64_t layer) const { return experts.any() && layer >= experts.first_dense_layers; }
  std::int64_t dense_layers() const {
    return experts.any() && experts.first_dense_layers < layers ? experts.first_dense_layers : layers;
  }
  std::int64_t expert_layers() const { return layers - dense_layers(); }
  std::int64_t own_words() const { return vocab_size / split.ranks; }
  std::int64_t own_rows() const { return split.sequence_parallel ? rows() / split.ranks : rows(); }
  // Throws assay::Error: INVALID_ARGUMENT; UNSUPPORTED where the unfused form has no such products, and where ranks
  // cannot share the model, or not this form of it.
  void validate() const;
};

}  // namespace assay::models
