// An optimizer's update that goes along with backward, on the backend's side lane: parameters are updated while
// backward is on its way to the next ones. Gradients are made by products, which are bound by the multiprocessors, and
// the update by memory, so that the two may share a device; a device without lanes updates between the operations of
// backward.
#pragma once
#include <assay/train/parameters.hpp>
#include <assay/train/trainer.hpp>
#include <cstdint>

namespace assay::train {

class UpdateBesideBackward final : public GradientListener {
 public:
  // Fewer elements are not worth a separate update. On an H200 2^16 to 2^20 were equal, and 2^22 was longer by 2% of a
  // small step, because gradients that products have just made are in the cache.
  static constexpr std::int64_t min_stretch_elements = std::int64_t{1} << 18;

  // It serves one step. The trainer was set up and has no loss scaling, which has to see all gradients first.
  // `min_elements` is at least 1. Throws INVALID_ARGUMENT for an optimizer that restrict_to() has given parts of the
  // arena.
  explicit UpdateBesideBackward(const Trainer& trainer, std::int64_t min_elements = min_stretch_elements);

  // Updates what the call before said: backward may still read the parameters that this one speaks of.
  void gradients_ready(ParameterSet::Id end) override;
  // To be called once, after backward: updates the rest on the main lane, which from then on sees the whole update.
  void finish();

 private:
  void begin_before_first();
  void update_to(std::int64_t end);

  const Trainer& trainer_;
  std::int64_t min_elements_;
  std::int64_t updated_elements_ = 0, updatable_elements_ = 0;  // elements from the arena's begin
};

}  // namespace assay::train
