// The decoder workload: one step of a decoder Transformer, in three phases.
#pragma once
#include <assay/train/path_check.hpp>
#include <memory>

#include "settings.hpp"

namespace decoder {

class Workload {
 public:
  static constexpr auto id = "decoder";
  static constexpr auto summary = "decoder-only Transformer language model: forward, backward, optimizer step";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = decoder::params;
  enum Phase { forward_phase, backward_phase, optimizer_phase };
  static constexpr auto phases = assay::names("forward", "backward", "optimizer");
  enum Metric { parameters_metric, loss_metric, loss_scale_metric, skipped_steps_metric };
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("parameters", nullptr, ASSAY_NEITHER_IS_BETTER, "number of trainable parameters"),
      assay::Metric::per_case("loss", nullptr, ASSAY_NEITHER_IS_BETTER, "cross-entropy of the last step, nats"),
      assay::Metric::per_case("loss_scale", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "fp16: the loss scale after the last step"),
      assay::Metric::per_case("skipped_steps", "steps", ASSAY_LOWER_IS_BETTER,
                              "fp16: steps without an update, their gradients not being finite; warm-up included"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch);
  void run(const assay::Launch& launch);
  void finish(const assay::Launch& launch);
  std::string verify(const assay::Launch& launch);
  assay::Work work() const;

 private:
  void enqueue_step(const assay::Launch& launch);
  void dump();

  // verification.cpp; each returns what it found right, or throws WRONG_RESULT
  assay::train::Outcome outcome_of(const assay::train::DecoderModel& model, assay::compute::Graph* graph);
  std::string check_start(double loss) const;

  const assay::train::DecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  assay::train::DecoderTrainer trainer_;
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
};

}  // namespace decoder
