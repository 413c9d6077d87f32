// Latent attention's way from a token to queries, keys and values, and back, in float64 on the host, for
// decoder_reference: row by row, as the formulas of models/latent_attention.hpp say.
#pragma once
#include "layer_reference.hpp"

namespace assay::verification {

class LatentReference {
 public:
  LatentReference(const models::DecoderConfig& config, const train::ParameterSet& set, ReferenceParameters& parameters,
                  std::int64_t layer);

  // Of normed rows x: queries and keys [rows, heads (nope + rope)], values [rows, heads v].
  void forward(const Matrix& x, Matrix& q, Matrix& k, Matrix& v);
  // The gradient by x; keeps those by the parameters.
  Matrix backward(Matrix dq, const Matrix& dk, const Matrix& dv) const;

 private:
  using Id = train::ParameterSet::Id;

  Matrix project_back(const Matrix& dy, const Matrix& x, Id weight) const;

  ReferenceParameters& parameters_;
  NormsReference norms_;
  RotationReference rotation_;
  std::size_t heads_, nope_, rope_, value_, rank_;
  bool has_query_latent_;
  Id q_, q_norm_ = 0, q_b_ = 0, kv_a_, kv_norm_, kv_b_;

  Matrix x_, q_latent_, latent_;
  ReferenceNorm q_normed_, normed_;
};

}  // namespace assay::verification
