// An update that goes along with the products that make gradients: a model asks for it where a product can also update
// the matrix whose gradient it has made (GradientListener::update_of), which saves reading the gradient again. The
// other parameters are updated after backward.
#pragma once
#include <assay/train/parameters.hpp>
#include <assay/train/trainer.hpp>
#include <vector>

namespace assay::train {

class UpdateInProducts final : public GradientListener {
 public:
  // It serves one step of a trainer that was set up, whose optimizer is AdamW over the whole arena, without a loss
  // scale. `next`, if any, hears what this one hears; what it waits for must be over before finish().
  explicit UpdateInProducts(const Trainer& trainer, GradientListener* next = nullptr)
      : trainer_(trainer), next_(next) {}

  void gradients_ready(ParameterSet::Id end) override {
    if (next_) next_->gradients_ready(end);
  }
  compute::WeightUpdate update_of(ParameterSet::Id id) override;
  // To be called once, after backward: updates all parameters that no product has updated.
  void finish();

 private:
  void begin_before_first();

  const Trainer& trainer_;
  GradientListener* next_;
  std::vector<ElementRange> updated_;  // of the arena
  bool has_begun_ = false;
};

}  // namespace assay::train
