// Cross-entropy: losses[r] = -log softmax(logits[r, :])[labels[r]]. A label < 0 is ignored: its loss and its gradient
// are 0. Gradients are multiplied by `scale` and, when given, by *loss_scale.
//
// With a soft cap logits x become cap tanh(x / cap) first (Gemma 2; Hugging Face's final_logit_softcapping), and
// gradients are those by x: `logits` are always before the cap, lse is that of what it makes of them.
//
// The logits may be columns of wider rows, which several ranks have in parts: `classes` says which classes the columns
// stand for. A label that another rank has then has no column here: its loss counts as 0, and its gradient is scale *
// softmax. The ranks' results combine by the same operation: with P parts of C classes each, the P log-sum-exps of a
// row are logits whose columns stand for C classes each. The lse of that is the whole row's, and its loss is what the
// loss of the part with the label lacks.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <array>
#include <cstdint>

namespace assay::compute {

// Column c stands for the classes from first + c each on, `each` of them.
struct ClassColumns {
  std::int64_t first = 0, each = 1;
  std::int64_t all = 0;  // classes that there are; 0: those of the columns. A label beyond them has no class
};

namespace op {

struct CrossEntropyForward {
  In logits;        // T [..., C], contiguous
  In labels;        // i64, one for each row
  Out losses, lse;  // fp32, one for each row
  ClassColumns classes = {};
  float soft_cap = 0;  // 0: logits stay
  ASSAY_OPERATION("cross_entropy_forward", logits, labels, losses, lse)
};
struct CrossEntropyBackward {
  In logits, labels, lse;
  float scale;
  Optional<In> loss_scale = {};  // fp32 [1]
  Out dlogits;
  ClassColumns classes = {};  // `each` is 1
  float soft_cap = 0;
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
  float soft_cap = 0;
  ASSAY_OPERATION("cross_entropy_in_place", logits, labels, losses, loss_scale)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_LOSSES(X) \
  X(CrossEntropyForward) X(CrossEntropyBackward) X(CrossEntropyInPlace)
// clang-format on
