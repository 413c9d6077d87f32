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

std::string check_gradients_by_differences(train::Trainer& trainer, double tolerance) {
  constexpr double along = 0.01;     // by so much the parameter is moved along its gradient
  constexpr double by_signs = 1e-3;  // and by so much each of its elements, by signs drawn by lot
  constexpr double rounding = 4e-7;  // of a loss in fp32
  const ParameterSet& set = trainer.parameters();
  if (set.policy().parameter != compute::DType::f32 || set.policy().activation != compute::DType::f32)
    throw Error(ASSAY_UNSUPPORTED,
                "gradients are checked by differences of the loss in fp32 alone, where it has enough digits; use "
                "check_gradients_against_float64");
  const double scale = enqueue_from_the_start(trainer);
  std::uint64_t lot = 1;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::string& name = set.all()[id].name;
    const std::vector<float> values = workload::download_f32(trainer.backend(), set.value(id));
    const std::vector<float> gradient = workload::download_f32(trainer.backend(), set.gradient(id));
    const double length = length_of(gradient);
    if (!(length > 0))
      throw Error(ASSAY_WRONG_RESULT,
                  "the gradient by " + name + " is " + (length == 0 ? "0 in every element" : "not finite"));
    const auto loss_at = [&](const std::vector<float>& parameter) {
      workload::upload_f32(trainer.backend(), set.value(id), parameter);
      trainer.forward();
      return trainer.last_loss();
    };
    const auto slope_along = [&](const std::vector<float>& way, double step) {
      std::vector<float> up = values, down = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        up[i] += static_cast<float>(step) * way[i];
        down[i] -= static_cast<float>(step) * way[i];
      }
      return (loss_at(up) - loss_at(down)) / (2 * step);
    };
    std::vector<float> unit = gradient, signs(gradient.size());
    for (float& g : unit) g = static_cast<float>(g / length);
    double by_lot = 0;  // what the signs make of the gradient
    for (std::size_t i = 0; i < signs.size(); ++i) {
      lot = lot * 6364136223846793005U + 1442695040888963407U;
      signs[i] = (lot >> 63) != 0 ? 1.0F : -1.0F;
      by_lot += double{signs[i]} * double{gradient[i]} / scale;
    }
    const double allowed = tolerance * length / scale;
    judge("the change of the loss along the gradient by " + name, slope_along(unit, along), length / scale,
          allowed + rounding / along);
    judge("the change of the loss with the elements of " + name, slope_along(signs, by_signs), by_lot,
          allowed + rounding / by_signs);
    loss_at(values);
  }
  return "the loss changes with the " + std::to_string(set.all().size()) +
         " parameters as their gradients say, along each and by signs drawn by lot, within " + number(100 * tolerance) +
         "%";
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
