#include "assay/verification/gradient_check.hpp"

#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <cstdint>

namespace assay::verification {

using train::ParameterSet;
using workload::number;

namespace {

double length_of(const std::vector<float>& gradient) {
  double squares = 0;
  for (const float g : gradient) squares += double{g} * double{g};
  return std::sqrt(squares);
}

void judge(const std::string& what, double found, double expected, double allowed) {
  if (std::abs(found - expected) <= allowed) return;
  throw Error(ASSAY_WRONG_RESULT, what + " is off: " + number(found, "%.9g") + ", expected " +
                                      number(expected, "%.9g") + " within " + number(allowed));
}

// Forward and backward from the start. Returns what the gradients are multiplied by.
double enqueue_from_the_start(train::Trainer& trainer) {
  trainer.initialize();
  trainer.start();
  trainer.forward();
  trainer.backward();
  trainer.backend().synchronize();
  return trainer.scaler().scale_of_gradients(trainer.backend());
}

}  // namespace

std::string check_gradients_along_themselves(train::Trainer& trainer, double tolerance) {
  constexpr double step = 0.01;      // of the parameter, along its gradient
  constexpr double rounding = 1e-4;  // of a difference of two losses in fp32, over the step
  const ParameterSet& set = trainer.parameters();
  if (set.policy().parameter != compute::DType::f32 || set.policy().activation != compute::DType::f32)
    throw Error(ASSAY_UNSUPPORTED,
                "gradients are checked along themselves in fp32 alone, where a loss has enough digits; "
                "use check_gradients_against_float64");
  const double scale = enqueue_from_the_start(trainer);
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::vector<float> values = workload::download_f32(trainer.backend(), set.value(id));
    const std::vector<float> gradient = workload::download_f32(trainer.backend(), set.gradient(id));
    const double length = length_of(gradient);
    const auto loss_after = [&](double way) {
      std::vector<float> moved = values;
      for (std::size_t i = 0; way != 0 && i < moved.size(); ++i)
        moved[i] += static_cast<float>(way / length) * gradient[i];
      workload::upload_f32(trainer.backend(), set.value(id), moved);
      trainer.forward();
      return trainer.last_loss();
    };
    if (!(length > 0))
      throw Error(ASSAY_WRONG_RESULT, "the gradient by " + set.all()[id].name + " is " +
                                          (length == 0 ? "0 in every element" : "not finite"));
    const double slope = (loss_after(step) - loss_after(-step)) / (2 * step);
    loss_after(0);
    judge("the change of the loss along the gradient by " + set.all()[id].name, slope, length / scale,
          tolerance * length / scale + rounding);
  }
  return "the loss changes along each parameter's gradient by its length, within " + number(100 * tolerance) + "%";
}

std::string check_gradients_against_float64(train::Trainer& trainer, const Float64Loss& loss, double tolerance) {
  constexpr double step = 1e-5;
  const ParameterSet& set = trainer.parameters();
  if (tolerance == 0) tolerance = set.policy().activation == compute::DType::f32 ? 1e-4 : 5e-2;
  const double scale = enqueue_from_the_start(trainer);
  std::vector<std::vector<double>> values;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::vector<float> read = workload::download_f32(trainer.backend(), set.compute(id));
    values.emplace_back(read.begin(), read.end());
  }
  const double expected_loss = loss(values);
  judge("the loss", trainer.last_loss(), expected_loss, tolerance * std::abs(expected_loss));

  std::uint64_t lot = 1;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::vector<float> gradient = workload::download_f32(trainer.backend(), set.gradient(id));
    std::vector<std::vector<double>> up = values, down = values;
    double change = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      lot = lot * 6364136223846793005U + 1442695040888963407U;
      const double sign = (lot >> 63) != 0 ? 1 : -1;
      up[id][i] += sign * step, down[id][i] -= sign * step;
      change += sign * double{gradient[i]} / scale;
    }
    const double expected = (loss(up) - loss(down)) / (2 * step);
    const double length = length_of(gradient) / scale;
    judge("the gradient by " + set.all()[id].name, change, expected, tolerance * (length > 0 ? length : 0));
  }
  return "loss and the gradients by all " + std::to_string(set.all().size()) + " parameters within " +
         number(tolerance) + " of float64";
}

}  // namespace assay::verification
