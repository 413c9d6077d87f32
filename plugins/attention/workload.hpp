// The attention workload: one step is a forward, a backward, or both.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/counted_backend.hpp>
#include <assay/compute/workspace.hpp>
#include <assay/workload/spoiled_results.hpp>
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
  static constexpr auto forward_phase = assay::phase("forward");
  static constexpr auto backward_phase = assay::phase("backward");
  static constexpr auto phases = assay::table(forward_phase, backward_phase);
  static constexpr auto matrix_rate_metric =
      assay::Metric::per_case("matrix_tflop_per_s")
          .unit("TFLOP/s")
          .higher_is_better()
          .help("rate of a large square matrix product of the dtype, measured in set-up");
  static constexpr auto share_metric =
      assay::Metric::per_case("share_of_matrix_rate")
          .higher_is_better()
          .help("the step's rate, of some more steps after the measured ones, by matrix_tflop_per_s");
  static constexpr auto metrics = assay::table(matrix_rate_metric, share_metric);
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  void open_account(const Launch& launch);
  assay::Account account(const Launch& launch);
  std::string verify(const Launch& launch);
  assay::Peak peak(const Launch& launch);
  assay::Work work() const;

 private:
  bool has_forward() const { return settings_.pass != Pass::backward; }
  bool has_backward() const { return settings_.pass != Pass::forward; }

  // Setup goes once through what a framework's user would do, with a moment of the account after each part.
  void open(const Launch& launch);
  void make_model();
  void make_inputs();
  void run_forward_once();  // with memory taken and kernels found; to its end
  void first_forward();
  void first_backward();
  void hold_for_steps();
  void prepare(const std::function<void()>& enqueue);
  void capture(const Launch& launch);
  void measure_matrices(const Launch& launch);

  // A cold start makes model and inputs in set-up; each phase of the first step takes and prepares what it needs.
  void setup_cold();
  void take_first_step(const Launch& launch);

  void enqueue_step(const Launch& launch);
  void repeat_step(const Launch& launch);  // as the timed one, outside the timed window

  // account.cpp
  Slots written() const;  // what each step writes anew
  std::vector<assay::compute::Tensor> written_tensors() const;
  void prepare_account();
  void compare_with_timed();  // what a repeated step has left, with what the last timed one had

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
  void spoil(const Slots& slots);  // with NaN
  void repeat_into_spoiled_results(const Launch& launch);
  std::vector<Layer::ProductError> errors_of_projections();

  assay::Host host_;
  Settings settings_;
  std::unique_ptr<assay::compute::CountedBackend> backend_;
  Operands operands_;
  std::unique_ptr<Layer> layer_;
  assay::compute::Workspace workspace_;
  bool starts_cold_;
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
  assay::workload::SpoiledResults results_;
  std::vector<assay::StepMark> timed_marks_;  // of what the timed steps have left; empty until account()
  double matrix_tflop_per_s_ = 0;
};

}  // namespace attention
