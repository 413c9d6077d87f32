// One of the plugin's three studies: what a case of it does, behind the workload that the host sees.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>
#include <assay/train/training_metrics.hpp>
#include <optional>
#include <string>

namespace mixed_precision {

using StoredAs = std::optional<assay::compute::DType>;  // of a tensor that there may not be
inline constexpr auto formats = assay::choices<StoredAs>({{"fp32", assay::compute::DType::f32},
                                                          {"bf16", assay::compute::DType::bf16},
                                                          {"fp16", assay::compute::DType::f16},
                                                          {"none", std::nullopt}});
inline constexpr auto product_maths = assay::choices<assay::compute::ProductMath>(
    {{"exact", assay::compute::ProductMath::exact}, {"tf32", assay::compute::ProductMath::tf32}});
enum class Reference { fp64, fp32 };
inline constexpr auto references = assay::choices<Reference>({{"fp64", Reference::fp64}, {"fp32", Reference::fp32}});

// The phases and metrics of all studies, which share one table.
struct Reports {
  static constexpr auto forward_phase = assay::phase("forward");
  static constexpr auto backward_phase = assay::phase("backward");
  static constexpr auto optimizer_phase = assay::phase("optimizer");
  static constexpr auto phases = assay::table(forward_phase, backward_phase, optimizer_phase);

  // accumulation
  static constexpr auto result_metric =
      assay::Metric::per_case("result").help("accumulation: what the device computed");
  static constexpr auto exact_stored_metric =
      assay::Metric::per_case("exact_stored")
          .help("accumulation: the exact result of the terms as stored, rounded once");
  static constexpr auto exact_real_metric =
      assay::Metric::per_case("exact_real").help("accumulation: the exact result of the terms before they were stored");
  static constexpr auto error_ulp_metric =
      assay::Metric::per_case("error_ulp")
          .unit("ulp")
          .help("accumulation: result less exact_stored, in units of the last place of the accumulator's format there");
  static constexpr auto rounding_error_metric =
      assay::Metric::per_case("rounding_error")
          .unit("%")
          .help("accumulation: result against exact_stored: what adding lost");
  static constexpr auto total_error_metric =
      assay::Metric::per_case("total_error")
          .unit("%")
          .help("accumulation: result against exact_real: what storing and adding lost");
  static constexpr auto ring_spread_metric =
      assay::Metric::per_case("ring_spread")
          .unit("ulp")
          .help("ring: between the largest and the smallest result over the ranks that a ring may start from");
  // dtypes
  static constexpr auto parameters_dtype_metric =
      assay::Metric::word("parameters_dtype", formats).help("dtypes: of the weights that the optimizer updates");
  static constexpr auto compute_copy_dtype_metric =
      assay::Metric::word("compute_copy_dtype", formats)
          .help("dtypes: of the copy of the weights that matrix products read");
  static constexpr auto product_math_metric =
      assay::Metric::word("product_math", product_maths).help("dtypes: what products may do to fp32 inputs");
  static constexpr auto fc1_output_dtype_metric =
      assay::Metric::word("fc1_output_dtype", formats).help("dtypes: of the first product's result");
  static constexpr auto relu_output_dtype_metric =
      assay::Metric::word("relu_output_dtype", formats).help("dtypes: of the activation's result");
  static constexpr auto layer_norm_statistics_dtype_metric =
      assay::Metric::word("layer_norm_statistics_dtype", formats)
          .help("dtypes: of the norm's mean and reciprocal deviation");
  static constexpr auto layer_norm_output_dtype_metric =
      assay::Metric::word("layer_norm_output_dtype", formats).help("dtypes: of the norm's result");
  static constexpr auto logits_dtype_metric =
      assay::Metric::word("logits_dtype", formats).help("dtypes: of the second product's result");
  static constexpr auto loss_dtype_metric = assay::Metric::word("loss_dtype", formats).help("dtypes: of the loss");
  static constexpr auto activation_gradients_dtype_metric =
      assay::Metric::word("activation_gradients_dtype", formats)
          .help("dtypes: of the gradients by the logits and by fc1's output");
  static constexpr auto gradients_dtype_metric =
      assay::Metric::word("gradients_dtype", formats).help("dtypes: of the gradients by parameters");
  static constexpr auto optimizer_state_dtype_metric =
      assay::Metric::word("optimizer_state_dtype", formats).help("dtypes: of AdamW's moments");
  // speed_accuracy
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help(
      "speed_accuracy: cross-entropy of the step after `loss_steps` updates, nats");
  static constexpr auto loss_difference_metric =
      assay::Metric::per_case("loss_difference")
          .help("speed_accuracy: loss less the loss of fp32, same start and batch");
  static constexpr auto skipped_steps_metric =
      assay::Metric::per_case("skipped_steps")
          .unit("steps")
          .lower_is_better()
          .help("fp16: of loss_steps, those without an update, a gradient being not finite");
  static constexpr auto gradient_reference_metric =
      assay::Metric::word("gradient_reference", references).help("speed_accuracy: what gradient_error compares with");
  // dtypes and speed_accuracy
  static constexpr auto gradient_error_metric =
      assay::Metric::per_case("gradient_error")
          .unit("%")
          .lower_is_better()
          .help("relative error of the gradients by all parameters at the start, in the Euclidean norm");

  static constexpr auto metrics = assay::table(
      result_metric, exact_stored_metric, exact_real_metric, error_ulp_metric, rounding_error_metric,
      total_error_metric, ring_spread_metric, parameters_dtype_metric, compute_copy_dtype_metric, product_math_metric,
      fc1_output_dtype_metric, relu_output_dtype_metric, layer_norm_statistics_dtype_metric,
      layer_norm_output_dtype_metric, logits_dtype_metric, loss_dtype_metric, activation_gradients_dtype_metric,
      gradients_dtype_metric, optimizer_state_dtype_metric, assay::train::parameters_metric, loss_metric,
      loss_difference_metric, skipped_steps_metric, gradient_reference_metric, gradient_error_metric);
};
using Launch = assay::LaunchOf<Reports>;

class Study : public Reports {
 public:
  Study() = default;
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  virtual ~Study() = default;
  virtual void setup(const Launch& launch) = 0;
  virtual void run(const Launch& launch) = 0;
  virtual void finish(const Launch&) {}
  virtual std::string verify(const Launch& launch) = 0;
  virtual assay::Work work() const { return {}; }
};

}  // namespace mixed_precision
