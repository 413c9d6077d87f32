#include "assay/train/path_check.hpp"

#include <cmath>

namespace assay::train {

using compute::DType;

PathTolerance path_tolerance(const PrecisionPolicy& p) {
  if (p.product_math == compute::ProductMath::tf32) return {1e-3, 0.05};
  return p.activation == DType::f32 ? PathTolerance{1e-5, 5e-4} : PathTolerance{1e-2, 0.15};
}

PathTolerance relu_path_tolerance(const PrecisionPolicy& p) {
  if (p.product_math == compute::ProductMath::tf32) return {1e-3, 0.2};
  return p.activation == DType::f32 ? PathTolerance{1e-5, 1e-2} : PathTolerance{1e-2, 0.4};
}

std::string check_finite(const Trainer& trainer, const TrainedModel& model) {
  const double loss = trainer.last_loss();
  if (!std::isfinite(loss)) throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + number(loss));
  float nonfinite = 0;
  trainer.backend().count_nonfinite(trainer.parameters().all_gradients(), model.loss());
  trainer.backend().download(&nonfinite, model.loss());
  if (nonfinite > 0 && trainer.scaler().active())
    return "last loss " + number(loss, "%.5g") + ", " + number(nonfinite, "%.0f") +
           " gradient elements overflowed in the last step, which the loss scale answers by skipping it; ";
  if (nonfinite > 0)
    throw Error(ASSAY_WRONG_RESULT, number(nonfinite, "%.0f") + " gradient elements of the last step are not finite");
  return "last loss " + number(loss, "%.5g") + ", all gradients finite; ";
}

std::string compare_paths(const std::string& what, const Outcome& timed, const Outcome& reference,
                          const PathTolerance& tolerance, const ParameterSet& parameters,
                          const std::string& last_sample) {
  const double loss_error = std::abs(timed.loss - reference.loss) / std::abs(reference.loss);
  double worst = 0;
  std::size_t worst_id = 0;
  for (std::size_t i = 0; i < timed.samples.size(); ++i)
    if (const double e = relative_difference(timed.samples[i], reference.samples[i]); !(e <= worst))
      worst = e, worst_id = i;
  const bool gradients = timed.samples.size() > 1;
  const std::string where =
      gradients && worst_id < parameters.all().size() ? parameters.all()[worst_id].name : last_sample;
  const std::string text = what + ": loss differs by " + number(loss_error) + " (tolerance " + number(tolerance.loss) +
                           "), " + (gradients ? "gradients" : "logits") + " by at most " + number(worst) + " (" +
                           where + "; tolerance " + number(tolerance.gradient) + ")";
  if (!(loss_error <= tolerance.loss && worst <= tolerance.gradient)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

}  // namespace assay::train
