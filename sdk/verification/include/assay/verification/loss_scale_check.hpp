// Does dynamic loss scaling work? A step whose gradients overflow must leave weights and moments unchanged, and lower
// the scale. Whether one of the measured steps overflows is chance; this check makes one overflow.
#pragma once
#include <assay/train/trainer.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace assay::verification {

// The state of a loss scaler, and its change by a step: as torch.amp.GradScaler defines it, with its default factors.
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
// Returns a text on the result, or throws WRONG_RESULT; "" without loss scaling. Blocks; start() restores the state.
std::string check_skipped_step(train::Trainer& trainer, const std::function<void()>& step);

}  // namespace assay::verification
