#include "assay/train/update_beside_backward.hpp"

#include <algorithm>

namespace assay::train {

void UpdateBesideBackward::gradients_ready(ParameterSet::Id end) {
  const ParameterSet& set = trainer_.parameters();
  if (updatable_elements_ - updated_elements_ >= min_elements_) {
    begin_once();
    compute::Backend& backend = trainer_.backend();
    backend.begin_side();
    update_to(updatable_elements_);
    backend.end_side();
  }
  // An update ends where a group does, whose begin is aligned.
  const auto& groups = set.group_begins();
  const auto after = std::upper_bound(groups.begin(), groups.end(), end);
  const ParameterSet::Id whole = end == set.all().size() || after == groups.begin() ? end : *(after - 1);
  updatable_elements_ = set.elements_before(whole);
}

void UpdateBesideBackward::finish() {
  begin_once();
  update_to(trainer_.parameters().arena_elements());
  trainer_.backend().join_side();
  trainer_.optimizer().end_step(trainer_.backend(), trainer_.scaler());
}

void UpdateBesideBackward::begin_once() {
  if (!begun_) trainer_.optimizer().begin_step(trainer_.backend(), trainer_.scaler());
  begun_ = true;
}

void UpdateBesideBackward::update_to(std::int64_t end) {
  if (end > updated_elements_)
    trainer_.optimizer().step_stretch(trainer_.backend(), trainer_.scaler(), {updated_elements_, end});
  updated_elements_ = std::max(updated_elements_, end);
}

}  // namespace assay::train
