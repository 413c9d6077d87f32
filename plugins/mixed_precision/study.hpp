// One of the plugin's three studies: what a case of it does, behind the workload that the host sees.
#pragma once
#include <assay/plugin.hpp>

#include <string>

namespace mixed_precision {

class Study {
 public:
  Study() = default;
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  virtual ~Study() = default;
  virtual void setup(const assay::Launch& launch) = 0;
  virtual void run(const assay::Launch& launch) = 0;
  virtual void finish(const assay::Launch&) {}
  virtual std::string verify(const assay::Launch& launch) = 0;
  virtual assay::Work work() const { return {}; }
};

enum Phase { forward_phase, backward_phase, optimizer_phase };

// Indices into Workload::metrics.
enum Metric {
  // accumulation
  result_metric,
  exact_stored_metric,
  exact_real_metric,
  error_ulp_metric,
  rounding_error_metric,
  total_error_metric,
  ring_spread_metric,
  // dtypes
  parameters_dtype_metric,
  compute_copy_dtype_metric,
  product_math_metric,
  fc1_output_dtype_metric,
  relu_output_dtype_metric,
  layer_norm_statistics_dtype_metric,
  layer_norm_output_dtype_metric,
  logits_dtype_metric,
  loss_dtype_metric,
  activation_gradients_dtype_metric,
  gradients_dtype_metric,
  optimizer_state_dtype_metric,
  // speed_accuracy
  parameters_metric,
  loss_metric,
  loss_difference_metric,
  skipped_steps_metric,
  gradient_reference_metric,
  // dtypes and speed_accuracy
  gradient_error_metric,
};

}  // namespace mixed_precision
