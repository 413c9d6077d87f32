// Latent attention's way from a token to queries, keys and values, and the way back of their gradients.
// latent_attention.hpp has the formulas.
#include <string>

#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;

void validate_latent(const DecoderConfig& c) {
  const LatentAttention& a = c.latent;
  const auto fail = [](const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); };
  const auto refuse = [](const std::string& text) {
    throw Error(ASSAY_UNSUPPORTED, "latent attention (kv_lora_rank): " + text);
  };
  if (!a.any()) {
    if (a.kv_lora_rank < 0) fail("kv_lora_rank " + std::to_string(a.kv_lora_rank) + "; expected at least 0");
    if (a.q_lora_rank != 0 || a.qk_nope_head_dim != 0 || a.qk_rope_head_dim != 0 || a.v_head_dim != 0 ||
        a.mscale_all_dim != 0)
      fail(
          "q_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim and rope_mscale_all_dim are of latent "
          "attention; set kv_lora_rank, or leave them 0");
    return;
  }
  if (a.q_lora_rank < 0 || a.qk_nope_head_dim < 1 || a.qk_rope_head_dim < 2 || a.qk_rope_head_dim % 2 != 0 ||
      a.v_head_dim < 1)
    fail("kv_lora_rank = " + std::to_string(a.kv_lora_rank) +
         " is of latent attention, which needs qk_rope_head_dim, an even number of at least 2, qk_nope_head_dim and "
         "v_head_dim of at least 1, and q_lora_rank of at least 0; given are " +
         std::to_string(a.qk_rope_head_dim) + ", " + std::to_string(a.qk_nope_head_dim) + ", " +
         std::to_string(a.v_head_dim) + " and " + std::to_string(a.q_lora_rank));
  // A norm of one column leaves a sign; of few its gradient's mean square diverges.
  constexpr std::int64_t least_columns = 4;
  if (a.kv_lora_rank < least_columns || (a.q_lora_rank > 0 && a.q_lora_rank < least_columns))
    fail("latents of " + std::to_string(a.kv_lora_rank) + " and " + std::to_string(a.q_lora_rank) +
         " columns are normed, and rounding decides norms of so few; expected kv_lora_rank of at least 4, and "
         "q_lora_rank of 0 or at least 4");
  if (c.kv_heads != 0 && c.kv_heads != c.heads)
    fail("each head has its own keys and values, made of one latent; expected kv_heads = 0, or as many as heads");
  if (c.head_dim != 0)
    fail("a head's columns are qk_nope_head_dim + qk_rope_head_dim, and v_head_dim; expected head_dim = 0");
  if (!(a.mscale_all_dim >= 0)) fail("rope_mscale_all_dim is a number of at least 0");
  if (c.qkv_bias) refuse("its products add no bias; expected qkv_bias = false");
  if (c.qk_norm) refuse("latents are normed, and no heads; expected qk_norm = false");
  if (c.sliding_window > 0 || c.full_attention_every > 0 || c.rope_local_theta > 0)
    refuse("every layer sees all tokens; expected sliding_window, full_attention_every and rope_local_theta of 0");
  if (c.attention_sinks || c.attention_soft_cap > 0)
    refuse("scores are as they are; expected attention_sinks = false and attention_soft_cap = 0");
  if (c.precision.eight_bit_products) refuse("it has no products of 8 bits; expected another precision than fp8");
  if (c.is_split()) refuse("it is whole on each rank; expected no tensor_parallel: fsdp serves it");
  if (c.shares_context())
    refuse("a rank has whole sequences; expected no context_parallel: fsdp and ddp share out the batch");
}

// ---- tensors -------------------------------------------------------------------------------------------------------

LatentForward DecoderModel::plan_latent_forward(const std::string& name) {
  const LatentAttention& a = config_.latent;
  const std::int64_t n = config_.rows(), h = config_.heads;
  const DType act = config_.precision.activation;
  LatentForward f{};
  if (a.q_lora_rank > 0) {
    f.q_latent = plan_.add(name + "queries.latent", act, {n, a.q_lora_rank});
    f.q_normed = plan_.add(name + "queries.normed", act, {n, a.q_lora_rank});
    f.q_rstd = plan_.add(name + "queries.rstd", DType::f32, {n});
    f.queries = plan_.add(name + "queries", act, {n, h * a.key_width()});
  }
  f.latent = plan_.add(name + "latent", act, {n, a.kv_lora_rank});
  f.normed = plan_.add(name + "latent.normed", act, {n, a.kv_lora_rank});
  f.rstd = plan_.add(name + "latent.rstd", DType::f32, {n});
  f.up = plan_.add(name + "keys_values", act, {n, h * a.up_width()});
  f.keys = plan_.add(name + "keys", act, {n, h * a.key_width()});
  return f;
}

LatentBackward DecoderModel::plan_latent_backward(const std::string& name) {
  const LatentAttention& a = config_.latent;
  const std::int64_t n = config_.rows(), h = config_.heads;
  const DType act = config_.precision.activation;
  LatentBackward g{};
  if (a.q_lora_rank > 0) {
    g.dq_latent = plan_.add(name + "queries.latent", act, {n, a.q_lora_rank});
    g.dqueries = plan_.add(name + "queries", act, {n, h * a.key_width()});
  }
  g.dlatent = plan_.add(name + "latent", act, {n, a.kv_lora_rank});
  g.dup = plan_.add(name + "keys_values", act, {n, h * a.up_width()});
  g.dkeys = plan_.add(name + "keys", act, {n, h * a.key_width()});
  g.of_heads = plan_.add(name + "keys.shared", DType::f32, {h, n, a.qk_rope_head_dim});
  return g;
}

namespace {

// [B, T, heads, D] of so many adjacent columns [N, heads D], which may be some of a wider matrix.
Tensor by_heads(const DecoderConfig& c, const Tensor& columns, std::int64_t heads) {
  Tensor t = columns;
  t.rank = 4;
  t.shape = {c.batch_size, c.context_length, heads, columns.dim(1) / heads};
  t.stride = {c.context_length * columns.step(0), columns.step(0), t.shape[3], 1};
  return t;
}

// Of what the latent becomes, [B, T, H, nope + v]: own columns of keys, or values.
Tensor part_of(const DecoderConfig& c, const Tensor& up, int which) {
  const LatentAttention& a = c.latent;
  const Tensor heads = by_heads(c, up, c.heads);
  return which == 1 ? heads.slice(3, 0, a.qk_nope_head_dim) : heads.slice(3, a.qk_nope_head_dim, a.v_head_dim);
}

Tensor latent_columns(const DecoderConfig& c, const Tensor& packed) {
  return packed.slice(1, c.latent.query_width(c.heads), c.latent.kv_lora_rank);
}

// [B, T, 1, R]: what the keys of all heads share.
Tensor shared_columns(const DecoderConfig& c, const Tensor& packed) {
  const LatentAttention& a = c.latent;
  return by_heads(c, packed.slice(1, a.query_width(c.heads) + a.kv_lora_rank, a.qk_rope_head_dim), 1);
}
// The same as [B, T, R].
Tensor without_heads(Tensor t) {
  t.rank = 3;
  t.shape[2] = t.shape[3], t.stride[2] = 1;
  return t;
}

Tensor rotated_columns(const DecoderConfig& c, const Tensor& heads) {
  return heads.slice(3, c.latent.qk_nope_head_dim, c.latent.qk_rope_head_dim);
}

// to [B, T, 1, R] = the sum over heads of `of` [B, T, H, R], by halves: `terms` is memory [H, N, R] of fp32.
void sum_of_heads(Backend& b, const Tensor& of, const Tensor& terms, const Tensor& to) {
  const auto heads = [&](std::int64_t first, std::int64_t count) { return terms.slice(0, first, count); };
  for (std::int64_t h = 0; h < of.dim(2); ++h)
    b.run(op::Copy{.to = heads(h, 1).view({of.dim(0), of.dim(1), 1, of.dim(3)}), .from = of.slice(2, h, 1)});
  for (std::int64_t count = of.dim(2); count > 1; count -= count / 2) {
    const std::int64_t half = count / 2;
    b.run(op::Add{.a = heads(0, half), .b = heads(count - half, half), .out = heads(0, half)});
  }
  b.run(op::Copy{.to = to, .from = heads(0, 1).view({of.dim(0), of.dim(1), 1, of.dim(3)})});
}

}  // namespace

Tensor DecoderModel::latent_heads(const Forward& f, int which) const {
  if (which == 2) return part_of(config_, plan_[f.latent.up], 2);
  if (which == 1) return by_heads(config_, plan_[f.latent.keys], config_.heads);
  return by_heads(config_, config_.latent.q_lora_rank > 0 ? plan_[f.latent.queries] : columns_of(plan_[f.qkv], 0),
                  config_.heads);
}

Tensor DecoderModel::gradient_of_latent_heads(const Backward& g, int which) const {
  if (which == 2) return part_of(config_, plan_[g.latent.dup], 2);
  if (which == 1) return by_heads(config_, plan_[g.latent.dkeys], config_.heads);
  return by_heads(config_, config_.latent.q_lora_rank > 0 ? plan_[g.latent.dqueries] : columns_of(plan_[g.dqkv], 0),
                  config_.heads);
}

// ---- forward -------------------------------------------------------------------------------------------------------

void DecoderModel::expand_latent(Backend& b, const Tensor& columns, const LatentNorm& norm,
                                 train::ParameterSet::Id weight, const Tensor& y) const {
  b.run(op::Copy{.to = norm.latent, .from = columns});
  b.run(op::RmsNormForward{.x = norm.latent,
                           .weight = set_.value(norm.weight),
                           .y = norm.normed,
                           .rstd = norm.rstd,
                           .eps = norm_eps(),
                           .weight_offset = norm_offset()});
  b.run(op::Matmul{.a = norm.normed, .b = set_.compute(weight), .c = y, .transpose_b = true});
}

void DecoderModel::make_latent_heads(Backend& b, std::int64_t layer, const Forward& f) const {
  const LatentParameters& p = layer_ids(layer).latent;
  const Tensor &packed = plan_[f.qkv], &cos = cos_of(layer), &sin = sin_of(layer);
  if (config_.latent.q_lora_rank > 0)
    expand_latent(b, columns_of(packed, 0), queries_norm(p, f), p.q_b, plan_[f.latent.queries]);
  expand_latent(b, latent_columns(config_, packed), latent_norm(p, f), p.kv_b, plan_[f.latent.up]);
  b.run(op::Rotary{.x = rotated_columns(config_, latent_heads(f, 0)), .cos = cos, .sin = sin});

  const Tensor own = part_of(config_, plan_[f.latent.up], 1), keys = latent_heads(f, 1);
  const Tensor shared = shared_columns(config_, packed);
  if (config_.fused)
    return b.run(
        op::LatentKeysForward{.nope = own, .shared = without_heads(shared), .cos = cos, .sin = sin, .k = keys});
  b.run(op::Rotary{.x = shared, .cos = cos, .sin = sin});
  b.run(op::Copy{.to = keys.slice(3, 0, own.dim(3)), .from = own});
  Tensor of_each_head = shared;
  of_each_head.shape[2] = config_.heads, of_each_head.stride[2] = 0;
  b.run(op::Copy{.to = rotated_columns(config_, keys), .from = of_each_head});
}

// ---- backward ------------------------------------------------------------------------------------------------------

void DecoderModel::expand_latent_back(Backend& b, const Tensor& dy, const LatentNorm& norm,
                                      train::ParameterSet::Id weight, const Tensor& dlatent,
                                      const Tensor& dcolumns) const {
  weight_gradient(b, dy, norm.normed, weight);
  b.run(op::Matmul{.a = dy, .b = set_.compute(weight), .c = dlatent});
  norm_backward(b, norm.weight, dlatent, norm.latent, norm.rstd, {}, dlatent, {});
  b.run(op::Copy{.to = dcolumns, .from = dlatent});
}

void DecoderModel::latent_heads_back(Backend& b, std::int64_t layer, const Forward& f, const Backward& g) const {
  const LatentParameters& p = layer_ids(layer).latent;
  const Tensor &packed = plan_[g.dqkv], &cos = cos_of(layer), &sin = sin_of(layer);
  const Tensor keys = gradient_of_latent_heads(g, 1), own = part_of(config_, plan_[g.latent.dup], 1);
  const Tensor shared = shared_columns(config_, packed);
  if (config_.fused) {
    b.run(op::LatentKeysBackward{.dk = keys, .cos = cos, .sin = sin, .dnope = own, .dshared = without_heads(shared)});
  } else {
    b.run(op::Copy{.to = own, .from = keys.slice(3, 0, own.dim(3))});
    sum_of_heads(b, rotated_columns(config_, keys), plan_[g.latent.of_heads], shared);
    b.run(op::Rotary{.x = shared, .cos = cos, .sin = sin, .inverse = true});
  }
  b.run(op::Rotary{
      .x = rotated_columns(config_, gradient_of_latent_heads(g, 0)), .cos = cos, .sin = sin, .inverse = true});
  expand_latent_back(b, plan_[g.latent.dup], latent_norm(p, f), p.kv_b, plan_[g.latent.dlatent],
                     latent_columns(config_, packed));
  if (config_.latent.q_lora_rank > 0)
    expand_latent_back(b, plan_[g.latent.dqueries], queries_norm(p, f), p.q_b, plan_[g.latent.dq_latent],
                       columns_of(packed, 0));
}

}  // namespace assay::models
