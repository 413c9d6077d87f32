// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1; DeepSeek-V3): keys and values of all heads
// are made of one narrow vector, the latent, so that a cache of it is small. Of a normed token y
//
//   (c | s) = W_kva y                    the latent, and the columns that the keys of all heads share
//   (n_h | v_h) = W_kvb rms_norm(c)      of each head: its own columns of the key, and its value
//   (q_h | r_h) = W_q y                  of each head, or W_qb rms_norm(W_qa y) with q_lora_rank
//
// Head h has the query (q_h | rotary(r_h)), the key (n_h | rotary(s)) and the value v_h. Scores are divided by the root
// of a query's columns. If yarn scales the rotation, they are also multiplied by m^2, m = 1 + 0.1 mscale_all_dim
// ln(factor). Cosines and sines are multiplied by RotaryScaling::magnitude: the quotient of the same for `mscale` and m
// (yarn_get_mscale in modeling_deepseek.py of deepseek-ai/DeepSeek-V2-Lite: self.softmax_scale * mscale * mscale, and
// DeepseekV2YarnRotaryEmbedding's _mscale).
//
// That program rotates pairs (2 i, 2 i + 1), as this one does, so that its weights are taken as they are; it then lays
// first elements before second ones, in queries and keys alike, which changes no score. Its norms of latents have an
// epsilon of 1e-6 whatever the model's; here they have the model's, which is 1e-6 in all published configurations.
#pragma once
#include <assay/train/buffer_plan.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>

namespace assay::models {

struct DecoderConfig;

// The names of the published configurations.
struct LatentAttention {
  std::int64_t kv_lora_rank = 0;      // columns of the latent; 0: queries, keys and values are products of the token
  std::int64_t q_lora_rank = 0;       // of the latent that queries are made of; 0: they are a product of the token
  std::int64_t qk_nope_head_dim = 0;  // columns of a head's query and key that are not rotated
  std::int64_t qk_rope_head_dim = 0;  // those that are, behind them; even
  std::int64_t v_head_dim = 0;        // columns of a head's value
  double mscale_all_dim = 0;          // with yarn; 0: scores are not multiplied

  bool any() const { return kv_lora_rank > 0; }
  std::int64_t key_width() const { return qk_nope_head_dim + qk_rope_head_dim; }
  std::int64_t up_width() const { return qk_nope_head_dim + v_head_dim; }  // of a head, of what the latent becomes
  std::int64_t down_width() const { return kv_lora_rank + qk_rope_head_dim; }
  // Of a token's queries, or of what they are made of.
  std::int64_t query_width(std::int64_t heads) const { return q_lora_rank > 0 ? q_lora_rank : heads * key_width(); }
  // Elements of a layer's matrices, without the output's. Each takes one multiply-add per token.
  std::int64_t elements(std::int64_t d_model, std::int64_t heads) const {
    return d_model * (query_width(heads) + down_width()) + q_lora_rank * heads * key_width() +
           kv_lora_rank * heads * up_width();
  }
};

// Throws assay::Error where latent attention, or its absence, does not go with what else the configuration says:
// INVALID_ARGUMENT, or UNSUPPORTED where it is not built.
void validate_latent(const DecoderConfig& config);

// Beside the layer's q, which is then W_q or W_qa, and the output product. In the order of the arena.
struct LatentParameters {
  train::ParameterSet::Id kv_b = 0, kv_norm = 0, q_b = 0, q_norm = 0;  // the last two with q_lora_rank
  train::ParameterSet::Id kv_a = 0;                                    // adjacent to q
};

// Temporary tensors of a layer, beside the packed product of the token, whose columns are queries or what they are made
// of, the latent, the shared columns of keys.
struct LatentForward {
  train::BufferPlan::Id q_latent, q_normed, q_rstd, queries;  // with q_lora_rank
  train::BufferPlan::Id latent, normed, rstd, up, keys;
};
struct LatentBackward {
  train::BufferPlan::Id dq_latent, dqueries;  // with q_lora_rank
  train::BufferPlan::Id dlatent, dup, dkeys;
  train::BufferPlan::Id of_heads;  // not fused: gradients of the shared columns, [H, N, R] of fp32
};

}  // namespace assay::models
