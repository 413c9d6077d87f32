#include "latent_reference.hpp"

#include <string>
#include <utility>

#include "decoder_parameters.hpp"
#include "double_products.hpp"

namespace assay::verification {

LatentReference::LatentReference(const models::DecoderConfig& config, const train::ParameterSet& set,
                                 ReferenceParameters& parameters, std::int64_t layer)
    : parameters_(parameters),
      norms_(config, parameters),
      rotation_{config.rope_theta, config.rope_scaling, static_cast<std::size_t>(config.context_length)},
      heads_(static_cast<std::size_t>(config.heads)),
      nope_(static_cast<std::size_t>(config.latent.qk_nope_head_dim)),
      rope_(static_cast<std::size_t>(config.latent.qk_rope_head_dim)),
      value_(static_cast<std::size_t>(config.latent.v_head_dim)),
      rank_(static_cast<std::size_t>(config.latent.kv_lora_rank)),
      has_query_latent_(config.latent.q_lora_rank > 0) {
  const std::string prefix = "layers." + std::to_string(layer) + ".attn.";
  const auto find = [&](const char* name) { return decoder_parameter(set, prefix + name); };
  q_ = find(has_query_latent_ ? "q_a_proj.weight" : "q_proj.weight");
  if (has_query_latent_) q_norm_ = find("q_a_norm.weight"), q_b_ = find("q_b_proj.weight");
  kv_a_ = find("kv_a_proj.weight"), kv_norm_ = find("kv_a_norm.weight"), kv_b_ = find("kv_b_proj.weight");
}

void LatentReference::forward(const Matrix& x, Matrix& q, Matrix& k, Matrix& v) {
  x_ = x;
  q = parameters_.project(x, q_);
  if (has_query_latent_) {
    q_latent_ = std::move(q);
    q_normed_ = norms_.forward(q_latent_, q_norm_);
    q = parameters_.project(q_normed_.y, q_b_);
  }
  rotation_.turn(q, nope_ + rope_, nope_, 1);

  const Matrix down = parameters_.project(x, kv_a_);
  Matrix shared(x.rows, rope_);
  latent_ = Matrix(x.rows, rank_);
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t j = 0; j < rank_; ++j) latent_.row(r)[j] = down.row(r)[j];
    for (std::size_t j = 0; j < rope_; ++j) shared.row(r)[j] = down.row(r)[rank_ + j];
  }
  rotation_.turn(shared, rope_, 0, 1);
  normed_ = norms_.forward(latent_, kv_norm_);
  const Matrix up = parameters_.project(normed_.y, kv_b_);
  k = Matrix(x.rows, heads_ * (nope_ + rope_));
  v = Matrix(x.rows, heads_ * value_);
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t h = 0; h < heads_; ++h) {
      const double* const of_head = up.row(r) + h * (nope_ + value_);
      double* const key = k.row(r) + h * (nope_ + rope_);
      for (std::size_t j = 0; j < nope_; ++j) key[j] = of_head[j];
      for (std::size_t j = 0; j < rope_; ++j) key[nope_ + j] = shared.row(r)[j];
      for (std::size_t j = 0; j < value_; ++j) v.row(r)[h * value_ + j] = of_head[nope_ + j];
    }
}

Matrix LatentReference::project_back(const Matrix& dy, const Matrix& x, Id weight) const {
  parameters_.keep_product(weight, dy, x);
  return parameters_.project_back(dy, weight);
}

Matrix LatentReference::backward(Matrix dq, const Matrix& dk, const Matrix& dv) const {
  Matrix dup(dk.rows, heads_ * (nope_ + value_)), dshared(dk.rows, rope_);
  for (std::size_t r = 0; r < dk.rows; ++r)
    for (std::size_t h = 0; h < heads_; ++h) {
      double* const of_head = dup.row(r) + h * (nope_ + value_);
      const double* const key = dk.row(r) + h * (nope_ + rope_);
      for (std::size_t j = 0; j < nope_; ++j) of_head[j] = key[j];
      for (std::size_t j = 0; j < rope_; ++j) dshared.row(r)[j] += key[nope_ + j];
      for (std::size_t j = 0; j < value_; ++j) of_head[nope_ + j] = dv.row(r)[h * value_ + j];
    }
  rotation_.turn(dshared, rope_, 0, -1);
  const Matrix dlatent = norms_.backward(project_back(dup, normed_.y, kv_b_), latent_, normed_, kv_norm_);
  Matrix ddown(dk.rows, rank_ + rope_);
  for (std::size_t r = 0; r < dk.rows; ++r) {
    for (std::size_t j = 0; j < rank_; ++j) ddown.row(r)[j] = dlatent.row(r)[j];
    for (std::size_t j = 0; j < rope_; ++j) ddown.row(r)[rank_ + j] = dshared.row(r)[j];
  }
  Matrix dx = project_back(ddown, x_, kv_a_);

  rotation_.turn(dq, nope_ + rope_, nope_, -1);
  if (has_query_latent_) dq = norms_.backward(project_back(dq, q_normed_.y, q_b_), q_latent_, q_normed_, q_norm_);
  add_to(dx, project_back(dq, x_, q_));
  return dx;
}

}  // namespace assay::verification
