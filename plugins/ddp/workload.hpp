// The ddp workload: one step of a decoder that several ranks train, each on its part of the batch.
#pragma once
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>
#include <cstddef>
#include <optional>

#include "settings.hpp"

namespace ddp {

class Workload {
 public:
  static constexpr auto id = "ddp";
  static constexpr auto summary = "data-parallel training of a decoder: gradients averaged over the ranks";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = ddp::params;
  static constexpr auto presets = assay::models::model_presets;
  static constexpr auto phases = assay::train::rank_training_phases;
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the last step on this rank's part of the batch, nats");
  static constexpr auto collectives_metric =
      assay::Metric::per_case("collectives").help("all-reduces in a step: parameters, buckets, or 1");
  static constexpr auto bucket_mib_metric =
      assay::Metric::per_case("bucket_mib")
          .unit("MiB")
          .help("overlap_bucketed: size of a bucket, as asked for or as measured");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::parallel::communication_metrics,
                  assay::table(collectives_metric, assay::parallel::small_collectives_metric,
                               assay::parallel::small_communication_bytes_metric, bucket_mib_metric));
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Account account(const Launch& launch);
  void restart(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Work work() const;  // this rank's
  assay::Peak peak(const Launch& launch);
  void silence(bool silent);

 private:
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch) {
    training_step(trainer_, launch, *average_);
  }
  std::size_t bucket_bytes(const Launch& launch);  // as asked for, or as measured
  void prepare_step(const Launch& launch, std::size_t bucket_bytes);
  double step_seconds(const Launch& launch, std::size_t bucket_bytes);

  // verification.cpp
  assay::Verified check_gradients(const Launch& launch);

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  assay::models::DecoderTrainer trainer_;
  std::optional<assay::parallel::GradientAverage> average_;  // made in set-up
  assay::parallel::RankSteps steps_;
};

}  // namespace ddp
