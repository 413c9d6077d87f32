// The encoder_decoder workload: training of a translation model on token pairs, measured by the epoch or by the step,
// on any number of ranks.
#pragma once
#include <assay/parallel/gradient_average.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/expected_samples.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/workload/precision.hpp>
#include <memory>

#include "settings.hpp"
#include "training_data.hpp"

namespace encoder_decoder {

// What the verification knows from the case, apart from what the settings make of it.
struct Configured {
  Configured(const assay::Case& c, const Settings& settings);  // settings: how many samples there are

  float dropout;
  std::uint64_t dropout_seed;  // each rank has its own masks
  assay::verification::SampleRule samples;
};

class Workload {
 public:
  static constexpr auto id = "encoder_decoder";
  static constexpr auto summary = "encoder-decoder Transformer trained on token pairs from memory or disk";
  static constexpr auto item_unit = "samples";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = encoder_decoder::params;
  static constexpr auto presets = encoder_decoder::presets;
  static constexpr auto data_wait_phase = assay::phase("data_wait");
  static constexpr auto train_phase = assay::phase("train");
  static constexpr auto phases =
      assay::table(data_wait_phase, train_phase, assay::train::forward_phase, assay::train::backward_phase,
                   assay::train::communication_wait_phase, assay::train::optimizer_phase);
  static constexpr auto samples_per_batch_metric =
      assay::Metric::per_case("samples_per_batch").unit("samples").help("samples in a step, on each rank");
  static constexpr auto precision_metric =
      assay::Metric::word("precision", assay::workload::precision_names, "what amp came to on this device");
  static constexpr auto batches_metric =
      assay::Metric::per_case("batches").help("batches of each rank in what is measured");
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help("cross-entropy of the last batch, nats");
  static constexpr auto epoch_loss_metric =
      assay::Metric::per_step("epoch_loss").help("cross-entropy of each epoch's last batch, nats");
  static constexpr auto data_wait_metric = assay::Metric::per_step("data_wait_ms")
                                               .unit("ms")
                                               .lower_is_better()
                                               .help("time that the host waited for a batch that was not there yet");
  static constexpr auto data_rate_metric =
      assay::Metric::per_case("data_mb_per_s")
          .unit("MB/s")
          .higher_is_better()
          .help("bytes of samples by the time that the workers spent reading them, one worker's rate");
  static constexpr auto exposed_ms_metric =
      assay::Metric::per_case("exposed_ms")
          .unit("ms")
          .lower_is_better()
          .help("several ranks: what collectives held up the computation, mean of what is measured");
  static constexpr auto unit_metric = assay::Metric::word("measured_unit", units).help("what a measured step is");
  static constexpr auto metrics = assay::table(
      assay::train::parameters_metric, samples_per_batch_metric, precision_metric, batches_metric, loss_metric,
      epoch_loss_metric, data_wait_metric, data_rate_metric, assay::train::loss_scale_metric,
      assay::train::skipped_steps_metric, exposed_ms_metric, unit_metric, assay::train::live_activations_metric);
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
  void start(
      double loss_scale = assay::train::LossScaler::start);  // the state before the first step, rank 0's on every rank
  void take_batch(const Launch& launch);
  void train_on_batch(const Launch& launch);
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch) {
    steps_.communicate() ? training_step(trainer_, launch, average_) : training_step(trainer_, launch);
  }
  void report_data(const Launch& launch);
  std::int64_t batches() const;

  // verification.cpp
  void enqueue(const assay::models::EncoderDecoderModel& of, assay::compute::Backend& by) const;
  // Leaves the gradients in the arena.
  void take_gradients(const assay::models::EncoderDecoderModel& of, assay::compute::Backend& by);
  assay::verification::Outcome taken(const assay::models::EncoderDecoderModel& model) const;
  // With the gradients that are in the arena.
  std::string compare_with(const std::string& what, const assay::verification::Outcome& found,
                           const assay::models::EncoderDecoderModel& other,
                           const assay::verification::PathTolerance& tolerance) const;
  void start_later();
  void spread_later();  // what start_later() does after the start
  void repeat_step(const Launch& launch);
  std::string check_start(double loss) const;
  std::string check_batches(const Launch& launch);
  std::string check_operations(const Launch& launch, assay::compute::Backend& audited);
  std::string check_optimizer(const Launch& launch);
  assay::Verified check_ranks(const Launch& launch);
  assay::Verified check_average_of_ranks(const Launch& launch);

  const assay::models::EncoderDecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  Configured configured_;
  assay::models::EncoderDecoderTrainer trainer_;
  assay::parallel::GradientAverage average_;
  std::unique_ptr<TrainingData> data_;
  assay::parallel::RankSteps steps_;                                  // without a communicator on one rank
  double loss_scale_ = assay::verification::verification_loss_scale;  // of the verification
  std::int64_t trained_ = 0;                                          // batches since the first epoch began
  // Over all that is measured. Workers read ahead: a single step may see a batch delivered and none read.
  std::uint64_t delivered_bytes_ = 0;
  double read_ms_ = 0;
};

}  // namespace encoder_decoder
