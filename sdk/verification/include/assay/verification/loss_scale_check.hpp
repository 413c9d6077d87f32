// Does dynamic loss scaling do what it is for? A step whose gradients overflow must leave weights and moments as they
// are, and lower the scale. Whether one of the measured steps overflows is chance; here one is made to.
#pragma once
#include <assay/train/trainer.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace assay::verification {

// What a loss scaler keeps, and what a step makes of it: as torch.amp.GradScaler says it, with its default factors.
struct ScalerState {
  double scale = 1;
  std::int64_t good_steps = 0, skipped_steps = 0;
  bool operator==(const ScalerState&) const = default;

  static constexpr double growth = 2, backoff = 0.5;
  static constexpr std::int64_t growth_interval = 2000;  // steps in a row without a skip
  ScalerState after_step(bool skips) const;
  std::string text() const;  // "scale 65536, 3 good steps, 1 skipped step"
};
// Without loss scaling it is that of no step. Blocks.
ScalerState scaler_state(const train::Trainer& trainer);

// `step` enqueues a whole step on this rank. From the start, at a loss scale at which no fp16 gradient is finite.
// Returns what was found, or throws WRONG_RESULT; "" without loss scaling. Blocks; start() begins anew.
std::string check_skipped_step(train::Trainer& trainer, const std::function<void()>& step);

}  // namespace assay::verification
