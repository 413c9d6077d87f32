// The mixed_precision workload: `study` says which of the three a case is.
#pragma once
#include <memory>

#include "settings.hpp"
#include "study.hpp"

namespace mixed_precision {

inline constexpr auto dtype_words = assay::names("fp32", "bf16", "fp16", "none");  // as compute::DType counts, and none
inline constexpr auto product_math_words = assay::names("exact", "tf32");          // as compute::ProductMath counts
inline constexpr auto reference_words = reference_names;

class Workload {
 public:
  static constexpr auto id = "mixed_precision";
  static constexpr auto summary = "what number formats do to sums, to the tensors of a model, and to its training";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = mixed_precision::params;
  static constexpr auto presets = mixed_precision::presets;
  static constexpr auto phases = assay::names("forward", "backward", "optimizer");
  static constexpr auto metrics = [] {
    const auto number = [](const char* name, const char* unit, const char* help,
                           assay_direction direction = ASSAY_NEITHER_IS_BETTER) {
      return assay::Metric::per_case(name, unit, direction, help);
    };
    const auto dtype = [](const char* name, const char* help) { return assay::Metric::word(name, dtype_words, help); };
    return assay::table(
        number("result", nullptr, "accumulation: what the device computed"),
        number("exact_stored", nullptr, "accumulation: the exact result of the terms as stored, rounded once"),
        number("exact_real", nullptr, "accumulation: the exact result of the terms before they were stored"),
        number("error_ulp", "ulp",
               "accumulation: result less exact_stored, in units of the last place of the accumulator's format there"),
        number("rounding_error", "%", "accumulation: result against exact_stored: what adding lost"),
        number("total_error", "%", "accumulation: result against exact_real: what storing and adding lost"),
        number("ring_spread", "ulp",
               "ring: between the largest and the smallest result over the ranks that a ring may start from"),
        dtype("parameters_dtype", "dtypes: of the weights that the optimizer updates"),
        dtype("compute_copy_dtype", "dtypes: of the copy of the weights that matrix products read"),
        assay::Metric::word("product_math", product_math_words, "dtypes: what products may do to fp32 inputs"),
        dtype("fc1_output_dtype", "dtypes: of the first product's result"),
        dtype("relu_output_dtype", "dtypes: of the activation's result"),
        dtype("layer_norm_statistics_dtype", "dtypes: of the norm's mean and reciprocal deviation"),
        dtype("layer_norm_output_dtype", "dtypes: of the norm's result"),
        dtype("logits_dtype", "dtypes: of the second product's result"), dtype("loss_dtype", "dtypes: of the loss"),
        dtype("activation_gradients_dtype", "dtypes: of the gradients by the logits and by fc1's output"),
        dtype("gradients_dtype", "dtypes: of the gradients by parameters"),
        dtype("optimizer_state_dtype", "dtypes: of AdamW's moments"),
        number("parameters", nullptr, "number of trainable parameters"),
        number("loss", nullptr, "speed_accuracy: cross-entropy of the step after `loss_steps` updates, nats"),
        number("loss_difference", nullptr, "speed_accuracy: loss less the loss of fp32, same start and batch"),
        number("skipped_steps", "steps", "fp16: of loss_steps, those without an update, a gradient being not finite",
               ASSAY_LOWER_IS_BETTER),
        assay::Metric::word("gradient_reference", reference_words, "speed_accuracy: what gradient_error compares with"),
        number("gradient_error", "%",
               "relative error of the gradients by all parameters at the start, in the Euclidean norm",
               ASSAY_LOWER_IS_BETTER));
  }();

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch) { study_->setup(launch); }
  void run(const assay::Launch& launch) { study_->run(launch); }
  void finish(const assay::Launch& launch) { study_->finish(launch); }
  std::string verify(const assay::Launch& launch) { return study_->verify(launch); }
  assay::Work work() const { return study_->work(); }

 private:
  std::unique_ptr<Study> study_;
};

}  // namespace mixed_precision
