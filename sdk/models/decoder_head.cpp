// The decoder's output head and its loss: whole, or in chunks of the batch's tokens.
//
// Logits of a large vocabulary are the largest tensor of a step. In chunks, only one chunk of them is in memory at a
// time. Forward makes a chunk's logits and its losses, and at once the gradients by the head and by the state before
// it, in the place of the logits. The head's gradient is the sum over chunks, added up by the products themselves.
#include <algorithm>

#include "decoder_split_pass.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

std::int64_t DecoderModel::chunk_rows() const {
  const std::int64_t chunks = std::max<std::int64_t>(1, config_.loss_chunks);
  return (config_.rows() + chunks - 1) / chunks;
}

// The logits of rows [first, first + count), in the memory of a chunk.
Tensor DecoderModel::make_logits(Backend& b, std::int64_t first, std::int64_t count) const {
  const Tensor logits = plan_[logits_].slice(0, 0, count);
  b.run(op::Matmul{.a = plan_[final_normed_].slice(0, first, count),
                   .b = set_.compute(ids_.lm_head),
                   .c = logits,
                   .transpose_b = true});
  // With a backward the loss has the cap, and reads logits before it; a forward ends at those behind it.
  const auto cap = static_cast<float>(config_.logit_soft_cap);
  if (!config_.backward && cap > 0) b.run(op::SoftCap{.x = logits, .cap = cap, .out = logits});
  if (!config_.keep_logits) return logits;
  const Tensor kept = plan_[kept_logits_].slice(0, first, count);
  if (config_.backward && cap > 0)
    b.run(op::SoftCap{.x = logits, .cap = cap, .out = kept});
  else
    b.run(op::Copy{.to = kept, .from = logits});
  return logits;
}

float DecoderModel::cap_of_loss() const { return config_.backward ? static_cast<float>(config_.logit_soft_cap) : 0.0F; }

void DecoderModel::head_forward(Backend& b, const Tensor* labels, std::int64_t valid_rows,
                                std::int64_t micro_batch) const {
  if (!labels) {
    make_logits(b, 0, config_.rows());
    return;
  }
  if (config_.is_split()) return SplitPass(*this, b).loss(*labels, valid_rows, micro_batch);
  const Tensor losses = plan_[losses_].slice(0, micro_batch * config_.rows(), config_.rows());
  const float scale = 1.0F / static_cast<float>(valid_rows);
  for (std::int64_t first = 0; first < config_.rows(); first += chunk_rows()) {
    const std::int64_t count = std::min(chunk_rows(), config_.rows() - first);
    const Tensor logits = make_logits(b, first, count);
    const Tensor of_labels = labels->slice(0, first, count), of_losses = losses.slice(0, first, count);
    if (config_.fused && config_.backward)
      b.run(op::CrossEntropyInPlace{.logits = logits,
                                    .labels = of_labels,
                                    .losses = of_losses,
                                    .scale = scale,
                                    .loss_scale = loss_scale_,
                                    .soft_cap = cap_of_loss()});
    else
      b.run(op::CrossEntropyForward{.logits = logits,
                                    .labels = of_labels,
                                    .losses = of_losses,
                                    .lse = plan_[lse_].slice(0, first, count),
                                    .soft_cap = cap_of_loss()});
    if (makes_loss_in_chunks()) head_products(b, of_labels, valid_rows, first, count, nullptr);
  }
  // The mean over all micro-batches, when the last one's losses are there.
  if (micro_batch + 1 == config_.accumulation_steps)
    b.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = scale});
}

// From the logits of rows [first, first + count), or their gradients: the gradients by the head and by its input.
void DecoderModel::head_products(Backend& b, const Tensor& labels, std::int64_t valid_rows, std::int64_t first,
                                 std::int64_t count, train::GradientListener* listener) const {
  const Tensor dlogits = plan_[logits_].slice(0, 0, count);
  if (!config_.fused)
    b.run(op::CrossEntropyBackward{.logits = dlogits,
                                   .labels = labels,
                                   .lse = plan_[lse_].slice(0, first, count),
                                   .scale = 1.0F / static_cast<float>(valid_rows),
                                   .loss_scale = loss_scale_,
                                   .dlogits = dlogits,
                                   .soft_cap = cap_of_loss()});
  const Tensor x = plan_[final_normed_].slice(0, first, count);
  // Not on the side lane in chunks: the next chunk's logits would overwrite what it reads.
  if (makes_loss_in_chunks())
    b.run(op::Matmul{
        .a = dlogits, .b = x, .c = set_.gradient(ids_.lm_head), .transpose_a = true, .accumulate = first > 0});
  else
    weight_gradient(b, dlogits, x, ids_.lm_head);
  if (!is_tied()) tell(listener, ids_.lm_head + 1);
  b.run(op::Matmul{.a = dlogits, .b = set_.compute(ids_.lm_head), .c = plan_[dfinal_].slice(0, first, count)});
}

}  // namespace assay::models
