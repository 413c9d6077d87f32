// What layers of a decoder have in common, in float64 on the host: RMS norms, and the rotation of heads.
#pragma once
#include <assay/verification/decoder_reference.hpp>
#include <cstddef>
#include <vector>

namespace assay::verification {

struct ReferenceNorm {
  Matrix y;
  std::vector<double> rstd;  // by row
};

class NormsReference {
 public:
  NormsReference(const models::DecoderConfig& config, ReferenceParameters& parameters)
      : eps_(config.norm_eps), from_one_(config.norms_from_one), parameters_(parameters) {}

  ReferenceNorm forward(const Matrix& x, train::ParameterSet::Id weight) const;
  // The gradient by x; keeps that by the weight.
  Matrix backward(const Matrix& dy, const Matrix& x, const ReferenceNorm& norm, train::ParameterSet::Id weight) const;

 private:
  std::vector<double> factors_of(train::ParameterSet::Id weight) const;

  double eps_;
  bool from_one_;
  ReferenceParameters& parameters_;
};

// For rows of a sequence's tokens, in heads of `width` columns each. The columns from `first` on turn: interleaved
// pairs, by the position within the sequence.
struct RotationReference {
  double theta;
  compute::RotaryScaling scaling;
  std::size_t context;
  // direction 1: the forward; -1: the backward, whose gradients turn the other way. Both multiply by the scaling's
  // magnitude, so that the one does not undo the other.
  void turn(Matrix& x, std::size_t width, std::size_t first, double direction) const;
};

}  // namespace assay::verification
