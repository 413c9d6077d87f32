// The decoder workload: one step of a decoder Transformer, in three phases.
#pragma once
#include <assay/train/decoder_check.hpp>
#include <assay/train/optimizer_check.hpp>
#include <assay/train/path_check.hpp>
#include <assay/train/training_metrics.hpp>
#include <memory>
#include <string>
#include <vector>

#include "settings.hpp"

namespace decoder {

class Workload {
 public:
  static constexpr auto id = "decoder";
  static constexpr auto summary = "decoder-only Transformer language model: forward, backward, optimizer step";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = decoder::params;
  static constexpr auto presets = assay::train::model_presets;
  static constexpr bool cold_start = true;
  static constexpr auto forward_phase = assay::phase("forward");
  static constexpr auto backward_phase = assay::phase("backward");
  static constexpr auto optimizer_phase = assay::phase("optimizer");
  static constexpr auto phases = assay::table(forward_phase, backward_phase, optimizer_phase);
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
  static constexpr auto metrics =
      assay::table(assay::train::parameters_metric, loss_metric, assay::train::loss_scale_metric,
                   assay::train::skipped_steps_metric, assay::train::live_activations_metric);
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Peak peak(const Launch& launch);
  assay::Work work() const;

 private:
  // In the first step of a cold start each phase prepares its operations before it enqueues them.
  enum class Preparation { done, in_each_phase };
  void enqueue_step(const Launch& launch, Preparation preparation = Preparation::done);
  void take_first_step(const Launch& launch);
  void dump();

  // verification.cpp; what returns text says what it found right, or throws WRONG_RESULT
  void enqueue_timed(const Launch& launch);
  void enqueue_with_loss(const assay::train::DecoderModel& of) const;
  void enqueue_with_loss(const assay::train::DecoderModel& of, assay::compute::Backend& by) const;
  std::string check_operations(assay::compute::Backend& audited, const assay::train::Outcome& timed, double loss_scale);
  std::string compare_with(const std::string& what, const assay::train::Outcome& timed,
                           const assay::train::DecoderModel& other) const;
  double loss_of(const assay::train::DecoderModel& model) const;
  std::vector<float> sample_of(const assay::train::DecoderModel& model, std::size_t index) const;
  double compared_share() const;
  assay::train::Outcome timed_outcome(const Launch& launch, std::string& text, double& loss_scale);
  std::string check_start(double loss) const;

  const assay::train::DecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  assay::train::DecoderTrainer trainer_;
  bool starts_cold_;
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
};

}  // namespace decoder
