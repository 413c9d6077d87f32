// Verifications check with these functions whether the result of a model's step is finite, and whether two ways to
// compute the same step agree.
#pragma once
#include <assay/train/sampling.hpp>
#include <assay/train/trainer.hpp>
#include <string>

namespace assay::train {

inline constexpr double verification_loss_scale = 1024;  // fp16: low enough for any start to be finite

struct Outcome {
  double loss = 0;
  Samples samples;  // gradients by parameter; further samples are those of `last_sample`
};

struct PathTolerance {
  double loss, gradient;  // relative
};
// fp32: rounding over a few dozen layers. tf32: 10 bits of mantissa in every product; bf16: 8 bits; and two paths round
// at different places. fp16 has 10 bits, but loses small gradients.
PathTolerance path_tolerance(const PrecisionPolicy& policy);
// The tolerance for a model with ReLUs is wider. A hidden state so near 0 that rounding decides on which side it falls
// passes all of a gradient or none: of states that differ by a relative e about a share e is of that kind, and
// gradients differ by sqrt(e).
PathTolerance relu_path_tolerance(const PrecisionPolicy& policy);

// Checks the loss and the gradients of the last step. Returns a text on what was found, or throws WRONG_RESULT.
// Overwrites the loss.
std::string check_finite(const Trainer& trainer, const TrainedModel& model);

// Throws WRONG_RESULT beyond the tolerance. `what`: "fused path against the unfused one". `last_sample` names the
// tensor of a sample beyond those of the parameters.
std::string compare_paths(const std::string& what, const Outcome& timed, const Outcome& reference,
                          const PathTolerance& tolerance, const ParameterSet& parameters,
                          const std::string& last_sample);

}  // namespace assay::train
