// Cross-entropy: losses[r] = -log softmax(logits[r, :])[labels[r]]. A label < 0 is ignored: its loss and its gradient
// are 0. Gradients are multiplied by `scale` and, when given, by *loss_scale.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <array>

namespace assay::compute::op {

struct CrossEntropyForward {
  In logits;        // T [..., C], contiguous
  In labels;        // i64, one for each row
  Out losses, lse;  // fp32, one for each row
  ASSAY_OPERATION("cross_entropy_forward", logits, labels, losses, lse)
};
struct CrossEntropyBackward {
  In logits, labels, lse;
  float scale;
  Optional<In> loss_scale = {};  // fp32 [1]
  Out dlogits;
  static constexpr auto in_place = std::to_array<InPlace>({{"dlogits", "logits"}});
  ASSAY_OPERATION("cross_entropy_backward", logits, labels, lse, loss_scale, dlogits)
};
// Both in one pass over the logits, which become scale * (softmax - one_hot).
struct CrossEntropyInPlace {
  InOut logits;
  In labels;
  Out losses;
  float scale;
  Optional<In> loss_scale = {};
  ASSAY_OPERATION("cross_entropy_in_place", logits, labels, losses, loss_scale)
};

}  // namespace assay::compute::op
