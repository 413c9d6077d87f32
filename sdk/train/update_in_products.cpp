#include "assay/train/update_in_products.hpp"

#include <algorithm>

namespace assay::train {

compute::WeightUpdate UpdateInProducts::update_of(ParameterSet::Id id) {
  begin_before_first();
  const ParameterSet& set = trainer_.parameters();
  const std::int64_t begin = set.all()[id].offset;
  updated_.push_back({begin, begin + set.all()[id].elements()});
  compute::WeightUpdate update = trainer_.optimizer().update_of(id);
  if (set.drops_gradient(id) && !set.gradient(id)) update.gradient_place = trainer_.gradient_place(id);
  return update;
}

void UpdateInProducts::finish() {
  begin_before_first();
  const Optimizer& optimizer = trainer_.optimizer();
  std::sort(updated_.begin(), updated_.end(),
            [](const ElementRange& a, const ElementRange& b) { return a.begin < b.begin; });
  std::int64_t at = 0;
  const auto update_to = [&](std::int64_t end) {
    if (at < end) optimizer.step_stretch(trainer_.backend(), trainer_.scaler(), {at, end});
  };
  for (const ElementRange& range : updated_) {
    update_to(range.begin);
    // What follows up to the next group is padding.
    at =
        (range.end + Optimizer::alignment_elements - 1) / Optimizer::alignment_elements * Optimizer::alignment_elements;
  }
  update_to(trainer_.parameters().arena_elements());
  optimizer.end_step(trainer_.backend(), trainer_.scaler());
}

void UpdateInProducts::begin_before_first() {
  if (!has_begun_) trainer_.optimizer().begin_step(trainer_.backend(), trainer_.scaler());
  has_begun_ = true;
}

}  // namespace assay::train
