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
  // Fewer elements are not worth an update of their own. On an H200 2^18 to 2^20 were the same, 2^22 longer by 2%
  // of a small step, since gradients that products have just made are in the cache.
  static constexpr std::int64_t least_elements = std::int64_t{1} << 18;

  // Of one step, of a trainer that was set up, has an update and no loss scaling, which has to see all gradients first.
  explicit UpdateBesideBackward(const Trainer& trainer, std::int64_t least = least_elements)
      : trainer_(trainer), least_(least) {}

  // Updates what the call before said: backward may still read the parameters that this one speaks of.
  void gradients_ready(ParameterSet::Id end) override;
  // After backward: updates the rest on the main lane, which from then on sees the whole update.
  void finish();

 private:
  void begin_once();
  void update_to(std::int64_t end);

  const Trainer& trainer_;
  std::int64_t least_;
  std::int64_t updated_ = 0, read_no_more_ = 0;  // elements from the arena's begin
  bool begun_ = false;
};

}  // namespace assay::train
