// The decoder workload: one step of a decoder Transformer, in three phases.
#pragma once
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>
#include <assay/verification/path_check.hpp>
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
  static constexpr auto presets = assay::models::model_presets;
  static constexpr bool cold_start = true;
  static constexpr auto phases = assay::train::training_phases;
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
  static constexpr auto pair_share_metric =
      assay::Metric::per_case("attention_pair_share")
          .help("with document_tokens: the pairs of tokens that attention has, by those of whole sequences");
  static constexpr auto metrics =
      assay::table(assay::train::parameters_metric, loss_metric, pair_share_metric, assay::train::loss_scale_metric,
                   assay::train::skipped_steps_metric, assay::train::live_activations_metric);
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Account account(const Launch& launch);
  void restart(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Peak peak(const Launch& launch);
  assay::Work work() const;

 private:
  void take_first_step(const Launch& launch);  // of a cold start

  // verification.cpp; what returns text says what it found right, or throws WRONG_RESULT
  void enqueue_timed(const Launch& launch);
  void enqueue_with_loss(const assay::models::DecoderModel& of) const;
  void enqueue_with_loss(const assay::models::DecoderModel& of, assay::compute::Backend& by) const;
  std::string check_operations(assay::compute::Backend& audited, const assay::verification::Outcome& timed,
                               double loss_scale);
  std::string compare_with(const std::string& what, const assay::verification::Outcome& timed,
                           const assay::models::DecoderModel& other) const;
  assay::compute::Tensor compared(const assay::models::DecoderModel& model, std::size_t index) const;
  assay::verification::Outcome timed_outcome(const Launch& launch, std::string& text, double& loss_scale);
  std::string check_start(double loss) const;

  const assay::models::DecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  assay::models::DecoderTrainer trainer_;
  bool starts_cold_;                              // until the first step has been taken
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
};

}  // namespace decoder
