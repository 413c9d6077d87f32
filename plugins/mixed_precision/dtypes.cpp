#include "dtypes.hpp"

#include <assay/compute/audited_backend.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cstring>

#include "gradient_error.hpp"
#include "rounding.hpp"

namespace mixed_precision {

using assay::Error;
using assay::compute::DType;
using assay::compute::Tensor;
using assay::train::ParameterSet;
using assay::workload::number;

namespace {

assay::train::TrainerConfig trainer_config(const assay::Case& c) {
  assay::train::TrainerConfig config;
  const auto precision = c.get<std::string_view>("precision");
  config.precision = assay::workload::precision_policy(precision, c.device_kind());
  if (c.choice("casting", castings) == Casting::autocast) {
    if (precision != "bf16" && precision != "fp16")
      throw Error(ASSAY_INVALID_ARGUMENT, "casting = \"autocast\" is of precision bf16 or fp16; in " +
                                              std::string(precision) + " nothing is converted: leave it out");
    config.precision.gradient = DType::f32;
  }
  config.seed = c.seed();
  return config;
}

}  // namespace

Dtypes::Dtypes(const assay::Case& c) : trainer_(c.host(), trainer_config(c), c.choice("casting", castings)) {}

void Dtypes::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  trainer_.setup(launch);
}

void Dtypes::finish(const Launch& launch) {
  const ParameterSet& set = trainer_.parameters();
  const ToyModel& model = trainer_.model();
  const auto report = [&](assay::WordIn<Dtypes, StoredAs> metric, const Tensor& t) {
    launch.report(metric, StoredAs(t.dtype));
  };
  report(parameters_dtype_metric, set.value(trainer_.ids().fc1));
  if (const Tensor copy = set.compute_copy())
    report(compute_copy_dtype_metric, copy);
  else
    launch.report(compute_copy_dtype_metric, StoredAs());
  launch.report(product_math_metric, set.policy().product_math);
  report(fc1_output_dtype_metric, model.fc1_output());
  report(relu_output_dtype_metric, model.relu_output());
  report(layer_norm_statistics_dtype_metric, model.norm_mean());
  report(layer_norm_output_dtype_metric, model.norm_output());
  report(logits_dtype_metric, model.logits());
  report(loss_dtype_metric, model.loss());
  if (model.logits_gradient().dtype != model.hidden_gradient().dtype)
    throw Error(ASSAY_INTERNAL, "gradients by activations are of several formats, the table has room for one");
  report(activation_gradients_dtype_metric, model.hidden_gradient());
  report(gradients_dtype_metric, set.gradient(trainer_.ids().fc1));
  report(optimizer_state_dtype_metric, trainer_.optimizer().moment(0));
}

// The reference reads the inputs as they are stored: that these are the ones which were drawn is another question.
void Dtypes::check_inputs() const {
  const std::vector<float> drawn = assay::workload::download_f32(trainer_.backend(), trainer_.drawn_inputs());
  const std::vector<float> stored = assay::workload::download_f32(trainer_.backend(), trainer_.inputs());
  check_stored(drawn, stored, trainer_.inputs().dtype, "input");
}

// Also with what is 1 or 0 at the start: weights and biases that a kernel may ignore then.
std::string Dtypes::check_operations() const {
  assay::compute::AuditedBackend audited(trainer_.backend(), trainer_.parameters().policy().product_math);
  assay::verification::spread_constants(trainer_.backend(), trainer_.parameters());
  trainer_.model().forward(audited, trainer_.inputs(), trainer_.labels());
  trainer_.model().backward(audited, trainer_.inputs(), trainer_.labels());
  return audited.text() + "; ";
}

std::string Dtypes::verify(const Launch& launch) {
  assay::compute::Backend& backend = trainer_.backend();
  const ParameterSet& set = trainer_.parameters();
  std::string text = assay::verification::check_finite(trainer_, trainer_.model());
  text += assay::verification::check_updates(trainer_, [&] { training_step(trainer_, launch); });
  check_inputs();
  trainer_.start(assay::verification::verification_loss_scale);
  text += check_operations();
  trainer_.start(assay::verification::verification_loss_scale);
  std::vector<std::int64_t> labels(toy_rows);
  backend.download(labels.data(), trainer_.labels());
  const double scale = trainer_.scaler().scale_of_gradients(backend);
  std::vector<std::vector<float>> values, gradients;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
    values.push_back(assay::workload::download_f32(backend, set.value(id)));
  assay::verification::spoil_gradients(backend, set);
  training_step(trainer_, launch);  // the timed one, with the update, which leaves the gradients as they are
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
    gradients.push_back(assay::workload::download_f32(backend, set.gradient(id)));
  const auto exact = toy_gradients(values, assay::workload::download_f32(backend, trainer_.inputs()), labels);
  GradientError error;
  for (std::size_t id = 0; id < gradients.size(); ++id) error.add(gradients[id], exact[id], scale);
  launch.report(gradient_error_metric, error.relative() * 100);
  const double tolerance = gradient_tolerance(set.policy(), 1);
  text += "gradients differ by " + number(error.relative()) + " from float64 (tolerance " + number(tolerance) + ")";
  if (!(error.relative() <= tolerance)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

}  // namespace mixed_precision
