// How the frequencies of a rotary position embedding change for a model that sees more positions than it was first
// trained with.
//
// Pair i of D/2 turns by f_i = theta^(-2i/D) a position. A scaled one turns by f_i (k_i + (1 - k_i) / factor), with the
// share k_i that is kept:
//   linear  0: all positions are interpolated (Chen et al., arXiv:2306.15595)
//   llama3  (n_i - low) / (high - low) within [0, 1], with the turns n_i = original_positions f_i / 2 pi of the pair in
//           the first context (Llama 3.1's apply_scaling; transformers, _compute_llama3_parameters)
//   yarn    1 - (i - l) / (h - l) within [0, 1], with l and h the pairs that make beta_fast and beta_slow turns in the
//           first context, (D/2) ln(original_positions / 2 pi beta) / ln theta; with `whole_pairs` the whole number
//           below and above; both in [0, D - 1]. Cosines and sines are multiplied by `magnitude`, which scales the
//           scores by its square (Peng et al., arXiv:2309.00071; transformers, _compute_yarn_parameters)
#pragma once
#include <cmath>
#include <cstdint>

namespace assay::compute {

enum class RotaryScalingKind : std::int32_t { none, linear, llama3, yarn };

struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  bool whole_pairs = true;               // yarn
  double factor = 1;                     // at least 1
  double original_positions = 0;         // llama3, yarn: of the first context
  double low = 1, high = 4;              // llama3: turns; low < high
  double beta_fast = 32, beta_slow = 1;  // yarn: turns; slow < fast
  double magnitude = 0;                  // yarn; 0: 1 + 0.1 ln(factor)
  bool operator==(const RotaryScaling&) const = default;

  // What cosines and sines are multiplied by.
  double applied_magnitude() const {
    if (kind != RotaryScalingKind::yarn) return 1;
    return magnitude > 0 ? magnitude : 1 + 0.1 * std::log(factor);
  }
};

}  // namespace assay::compute
