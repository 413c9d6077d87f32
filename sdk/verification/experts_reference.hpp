// A feed-forward of experts in float64 on the host, for decoder_reference: token by token and expert by expert, as the
// formulas of models/experts.hpp and compute/operations/experts.hpp say.
#pragma once
#include <assay/verification/decoder_reference.hpp>
#include <vector>

namespace assay::verification {

class ExpertsReference {
 public:
  ExpertsReference(const models::DecoderConfig& config, const train::ParameterSet& set, ReferenceParameters& parameters,
                   std::int64_t layer);

  // Of the normed rows x, without the residual stream. `chosen`: who the device chose; null: the best scores choose.
  // Throws WRONG_RESULT where the choice is wrong.
  Matrix forward(const Matrix& x, const ChosenExperts* chosen);
  // The gradient by x; keeps those by the parameters.
  Matrix backward(const Matrix& dy) const;

 private:
  using Id = train::ParameterSet::Id;
  struct Expert {
    std::vector<std::size_t> choices;  // t k + j of its rows
    Matrix x, gate, up, hidden, output;
  };

  void choose(const ChosenExperts* chosen);
  void check_choice(std::size_t token, double rounding, double logit_scale) const;
  void weigh();
  void run_expert(std::size_t expert);
  Matrix shared_forward();
  void shared_backward(const Matrix& dy, Matrix& dx) const;
  Matrix expert_backward(std::size_t expert, const Matrix& dy, std::vector<double>& dweights, Matrix& dgate_up,
                         Matrix& doutput) const;
  Matrix logit_gradients(const std::vector<double>& dweights) const;
  double hidden_of(double gate, double up) const;
  void add_vector(Matrix& y, Id id, std::size_t first) const;
  std::size_t choices_per_token() const { return static_cast<std::size_t>(c_.per_token); }

  models::ExpertsConfig c_;
  ReferenceParameters& parameters_;
  std::size_t layer_, width_, hidden_, micro_batches_;
  Id router_, w13_, w2_, router_bias_ = 0, w13_bias_ = 0, w2_bias_ = 0, shared_w1_ = 0, shared_w3_ = 0, shared_w2_ = 0;

  Matrix x_, logits_, scores_;
  std::vector<double> lse_;
  std::vector<std::size_t> choice_;  // [rows, per_token]
  std::vector<double> weights_;
  std::vector<Expert> experts_;
  Matrix shared_gate_, shared_up_, shared_hidden_;
};

}  // namespace assay::verification
