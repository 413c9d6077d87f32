#include "assay/verification/loss_scale_check.hpp"

#include <algorithm>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/workload/text.hpp>

namespace assay::verification {

ScalerState ScalerState::after_step(bool skips) const {
  constexpr double least_scale = 0x1p-64;  // where compute::LossScaleOptions differs from torch's
  if (skips) return {std::max(scale * backoff, least_scale), 0, skipped_steps + 1};
  if (good_steps + 1 == growth_interval) return {scale * growth, 0, skipped_steps};
  return {scale, good_steps + 1, skipped_steps};
}

std::string ScalerState::text() const {
  const auto counted = [](std::int64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? " step" : " steps");
  };
  return "scale " + workload::number(scale) + ", " + counted(good_steps, "good") + ", " +
         counted(skipped_steps, "skipped");
}

ScalerState scaler_state(const train::Trainer& trainer) {
  const train::LossScaler& scaler = trainer.scaler();
  ScalerState state;
  if (!scaler.active()) return state;
  state.scale = scaler.scale(trainer.backend());
  state.skipped_steps = scaler.skipped_steps(trainer.backend());
  trainer.backend().download(&state.good_steps, scaler.good_steps());
  return state;
}

std::string check_skipped_step(train::Trainer& trainer, const std::function<void()>& step) {
  constexpr double overflowing = 0x1p60;
  const train::LossScaler& scaler = trainer.scaler();
  if (!scaler.active()) return "";
  trainer.start(overflowing);
  OptimizerCheck check(trainer);
  step();
  check.after_step();  // looks at weights, moments, the step's number and the scaler
  if (!check.has_skipped())
    throw Error(ASSAY_WRONG_RESULT, "no gradient overflows at a loss scale of " + workload::number(overflowing));
  return "a step that overflows at a loss scale of " + workload::number(overflowing) +
         " changes no weight, and halves the scale; ";
}

}  // namespace assay::verification
