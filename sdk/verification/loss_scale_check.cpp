#include "assay/verification/loss_scale_check.hpp"

#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/workload/text.hpp>

namespace assay::verification {

std::string check_skipped_step(train::Trainer& trainer, const std::function<void()>& step) {
  constexpr double overflowing = 0x1p60;
  const train::LossScaler& scaler = trainer.scaler();
  if (!scaler.active()) return "";
  trainer.start(overflowing);
  OptimizerCheck check(trainer);
  step();
  check.after_step();  // looks at weights, moments and the step's number
  const double scale = scaler.scale(trainer.backend());
  const double expected = overflowing * static_cast<double>(compute::LossScaleOptions{}.backoff);
  const std::int64_t skipped = scaler.skipped_steps(trainer.backend());
  const std::string at = "at a loss scale of " + workload::number(overflowing);
  if (skipped != 1)
    throw Error(ASSAY_WRONG_RESULT, "a step " + at + ", whose gradients overflow, counts as " +
                                        std::to_string(skipped) + " skipped steps, expected 1");
  if (scale != expected)
    throw Error(ASSAY_WRONG_RESULT, "after a step that overflows " + at + " the scale is " + workload::number(scale) +
                                        ", expected " + workload::number(expected));
  return "a step that overflows " + at + " changes no weight, and halves the scale; ";
}

}  // namespace assay::verification
