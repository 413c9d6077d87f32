// The workload mixed_precision:dtypes: which format each tensor of the toy model has while it trains under a precision
// policy.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <memory>
#include <vector>

#include "formats.hpp"
#include "toy_model.hpp"

namespace mixed_precision {

inline constexpr auto product_maths = assay::choices<assay::compute::ProductMath>(
    {{"exact", assay::compute::ProductMath::exact}, {"tf32", assay::compute::ProductMath::tf32}});
inline constexpr auto castings =
    assay::choices<Casting>({{"policy", Casting::policy}, {"autocast", Casting::autocast}});

class Dtypes {
 public:
  static constexpr auto id = "dtypes";
  static constexpr auto summary = "which format each tensor of a small model has while it trains";
  static constexpr auto item_unit = "samples";
  static constexpr auto params = assay::join(
      precision_params, assay::table(assay::Param::choice("casting", Casting::policy, castings)
                                         .help("of bf16 and fp16; policy: as assay trains; autocast: as PyTorch's "
                                               "autocast does, layer norm in fp32, "
                                               "gradients by parameters rounded to 16 bits and widened to fp32")));
  static constexpr auto phases = assay::train::training_phases;
  static constexpr auto parameters_dtype_metric =
      assay::Metric::word("parameters_dtype", formats).help("of the weights that the optimizer updates");
  static constexpr auto compute_copy_dtype_metric =
      assay::Metric::word("compute_copy_dtype", formats).help("of the copy of the weights that matrix products read");
  static constexpr auto product_math_metric =
      assay::Metric::word("product_math", product_maths).help("what products may do to fp32 inputs");
  static constexpr auto fc1_output_dtype_metric =
      assay::Metric::word("fc1_output_dtype", formats).help("of the first product's result");
  static constexpr auto relu_output_dtype_metric =
      assay::Metric::word("relu_output_dtype", formats).help("of the activation's result");
  static constexpr auto layer_norm_statistics_dtype_metric =
      assay::Metric::word("layer_norm_statistics_dtype", formats).help("of the norm's mean and reciprocal deviation");
  static constexpr auto layer_norm_output_dtype_metric =
      assay::Metric::word("layer_norm_output_dtype", formats).help("of the norm's result");
  static constexpr auto logits_dtype_metric =
      assay::Metric::word("logits_dtype", formats).help("of the second product's result");
  static constexpr auto loss_dtype_metric = assay::Metric::word("loss_dtype", formats).help("of the loss");
  static constexpr auto activation_gradients_dtype_metric =
      assay::Metric::word("activation_gradients_dtype", formats)
          .help("of the gradients by the logits and by fc1's output");
  static constexpr auto gradients_dtype_metric =
      assay::Metric::word("gradients_dtype", formats).help("of the gradients by parameters");
  static constexpr auto optimizer_state_dtype_metric =
      assay::Metric::word("optimizer_state_dtype", formats).help("of AdamW's moments");
  static constexpr auto gradient_error_metric =
      assay::Metric::per_case("gradient_error")
          .unit("%")
          .lower_is_better()
          .help("relative error of the gradients by all parameters at the start, in the Euclidean norm");
  static constexpr auto metrics = assay::table(
      assay::train::parameters_metric, parameters_dtype_metric, compute_copy_dtype_metric, product_math_metric,
      fc1_output_dtype_metric, relu_output_dtype_metric, layer_norm_statistics_dtype_metric,
      layer_norm_output_dtype_metric, logits_dtype_metric, loss_dtype_metric, activation_gradients_dtype_metric,
      gradients_dtype_metric, optimizer_state_dtype_metric, gradient_error_metric);
  using Launch = assay::LaunchOf<Dtypes>;

  explicit Dtypes(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch) { training_step(trainer_, launch); }
  void finish(const Launch& launch);
  assay::Account account(const Launch&) { return trainer_.account(); }
  void restart(const Launch&) { trainer_.start(); }
  std::string verify(const Launch& launch);  // the gradients against those of float64

 private:
  void check_inputs() const;
  std::string check_operations() const;

  ToyTrainer trainer_;
};

// The gradients of the mean loss by each parameter, with float64 throughout. They are in the order of ToyParameters,
// and so are `parameters`.
std::vector<std::vector<double>> toy_gradients(const std::vector<std::vector<float>>& parameters,
                                               const std::vector<float>& x, const std::vector<std::int64_t>& labels);

}  // namespace mixed_precision
