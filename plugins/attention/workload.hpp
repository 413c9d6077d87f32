// The attention workload: one step is a forward, a backward, or both.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/backend.hpp>
#include <memory>
#include <string>
#include <vector>

#include "layer.hpp"
#include "reference.hpp"
#include "settings.hpp"

namespace attention {

class Workload {
 public:
  static constexpr auto id = "attention";
  static constexpr auto summary = "scaled dot-product attention alone, naive or flash: forward, backward, memory";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = attention::params;
  static constexpr bool cold_start = true;
  enum Phase { forward_phase, backward_phase };
  static constexpr auto phases = assay::names("forward", "backward");
  enum Metric { matrix_rate_metric, share_metric };
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("matrix_tflop_per_s", "TFLOP/s", ASSAY_HIGHER_IS_BETTER,
                              "rate of a large square matrix product of the dtype, measured in set-up"),
      assay::Metric::per_case("share_of_matrix_rate", nullptr, ASSAY_HIGHER_IS_BETTER,
                              "the step's rate, of some more steps after the measured ones, by matrix_tflop_per_s"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch);
  void run(const assay::Launch& launch);
  void finish(const assay::Launch& launch);
  std::string verify(const assay::Launch& launch);
  assay::Peak peak(const assay::Launch& launch);
  assay::Work work() const;

 private:
  bool has_forward() const { return settings_.pass != Pass::backward; }
  bool has_backward() const { return settings_.pass != Pass::forward; }

  // Setup goes once through what a framework's user would do, with a moment of the account after each part.
  void open(const assay::Launch& launch);
  void make_model();
  void make_inputs();
  void run_forward_once();  // with memory taken and kernels found; to its end
  void first_forward();
  void first_backward();
  void hold_for_steps();
  void prepare(const std::function<void()>& enqueue);  // and gives the backend its workspace
  void capture(const assay::Launch& launch);
  void measure_matrices(const assay::Launch& launch);

  // A cold start makes model and inputs in set-up; each phase of the first step takes and prepares what it needs.
  void setup_cold();
  void take_first_step(const assay::Launch& launch);

  void enqueue_step(const assay::Launch& launch);
  void repeat_step(const assay::Launch& launch);  // as the timed one, outside the timed window

  // verification.cpp
  struct SampledHead {
    std::int64_t index;  // among batch * heads
    Head head;
    Reference reference;
  };
  SampledHead sampled(std::int64_t index, const std::vector<std::int64_t>& queries);
  std::vector<float> head_of(const assay::compute::Tensor& t, std::int64_t index);
  std::vector<float> rows_of(const assay::compute::Tensor& t, std::int64_t index,
                             const std::vector<std::int64_t>& rows);
  double error_of_value_sums(const SampledHead& sampled);
  void keep_gradient_of(const std::vector<SampledHead>& heads, const std::vector<std::int64_t>& queries);
  std::vector<Layer::ProductError> errors_of_projections(const assay::Launch& launch);

  assay::Host host_;
  Settings settings_;
  std::unique_ptr<assay::compute::Backend> backend_;
  Operands operands_;
  std::unique_ptr<Layer> layer_;
  assay::DeviceMemory workspace_;
  bool starts_cold_;
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
  double matrix_tflop_per_s_ = 0;
};

}  // namespace attention
