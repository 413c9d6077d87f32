#include "assay/train/update_beside_backward.hpp"

#include <vector>

namespace assay::train {

UpdateBesideBackward::UpdateBesideBackward(const Trainer& trainer, std::int64_t min_elements)
    : trainer_(trainer), min_elements_(min_elements) {
  const std::vector<ElementRange>& ranges = trainer.optimizer().ranges();
  if (ranges.size() != 1 || ranges[0].elements() != trainer.parameters().arena_elements())
    throw Error(ASSAY_INVALID_ARGUMENT,
                "an update beside backward is of all parameters, and this optimizer has been restricted to parts of "
                "them; update after backward, or leave restrict_to out");
}

void UpdateBesideBackward::gradients_ready(ParameterSet::Id end) {
  if (updatable_elements_ - updated_elements_ >= min_elements_) {
    begin_before_first();
    compute::Backend& backend = trainer_.backend();
    backend.begin_side();
    update_to(updatable_elements_);
    backend.end_side();
  }
  const std::int64_t ready = trainer_.parameters().elements_before(end);
  updatable_elements_ = ready - ready % Optimizer::alignment_elements;
}

void UpdateBesideBackward::finish() {
  begin_before_first();
  update_to(trainer_.parameters().arena_elements());
  trainer_.backend().join_side();
  trainer_.optimizer().end_step(trainer_.backend(), trainer_.scaler());
}

// On the main lane: the side lane sees what is enqueued there before it begins.
void UpdateBesideBackward::begin_before_first() {
  if (updated_elements_ == 0) trainer_.optimizer().begin_step(trainer_.backend(), trainer_.scaler());
}

void UpdateBesideBackward::update_to(std::int64_t end) {
  trainer_.optimizer().step_stretch(trainer_.backend(), trainer_.scaler(), {updated_elements_, end});
  updated_elements_ = end;
}

}  // namespace assay::train
