// Training of a decoder whose products are split over the ranks, by columns and rows of its matrices.
#pragma once
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/parallel/split_ranks.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>

#include "settings.hpp"

namespace tensor_parallel {

class Workload {
 public:
  static constexpr auto id = "tensor_parallel";
  static constexpr auto summary = "decoder training with products split over the ranks and sequence-parallel norms";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = tensor_parallel::params;
  static constexpr auto presets = assay::models::model_presets;
  static constexpr auto phases = assay::train::rank_training_phases;
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the last step, nats, the same on every rank");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::train::kept_bytes_metrics,
                  assay::parallel::communication_metrics, assay::table(assay::parallel::messages_metric));
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Account account(const Launch& launch);
  void restart(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Work work() const;  // this rank's share
  assay::Peak peak(const Launch& launch);
  void silence(bool silent);

 private:
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch) {
    training_step(trainer_, launch, exchange_);
  }

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  assay::parallel::SplitRanks exchange_;
  assay::models::DecoderTrainer trainer_;  // of this rank's part of the model
  assay::parallel::RankSteps steps_;
};

}  // namespace tensor_parallel
