// The encoder_decoder workload: training of a translation model on token pairs, measured by the epoch or by the step,
// on any number of ranks.
#pragma once
#include <assay/comm/silent.hpp>
#include <assay/train/gradient_average.hpp>
#include <assay/train/optimizer_check.hpp>
#include <assay/train/path_check.hpp>
#include <memory>

#include "settings.hpp"
#include "training_data.hpp"

namespace encoder_decoder {

class Workload {
 public:
  static constexpr auto id = "encoder_decoder";
  static constexpr auto summary = "encoder-decoder Transformer trained on token pairs from memory or disk";
  static constexpr auto item_unit = "samples";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = encoder_decoder::params;
  static constexpr auto presets = encoder_decoder::presets;
  enum Phase { data_wait_phase, train_phase, forward_phase, backward_phase, communication_wait_phase, optimizer_phase };
  static constexpr auto phases =
      assay::names("data_wait", "train", "forward", "backward", "communication_wait", "optimizer");
  enum Metric {
    parameters_metric,
    samples_per_batch_metric,
    precision_metric,
    batches_metric,
    loss_metric,
    epoch_loss_metric,
    data_wait_metric,
    data_rate_metric,
    loss_scale_metric,
    skipped_steps_metric,
    exposed_ms_metric,
    unit_metric,
    live_activations_metric
  };
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("parameters", nullptr, ASSAY_NEITHER_IS_BETTER, "number of trainable parameters"),
      assay::Metric::per_case("samples_per_batch", "samples", ASSAY_NEITHER_IS_BETTER,
                              "samples in a step, on each rank"),
      assay::Metric::word("precision", assay::train::precision_names, "what amp came to on this device"),
      assay::Metric::per_case("batches", nullptr, ASSAY_NEITHER_IS_BETTER, "batches of each rank in what is measured"),
      assay::Metric::per_case("loss", nullptr, ASSAY_NEITHER_IS_BETTER, "cross-entropy of the last batch, nats"),
      assay::Metric::per_step("epoch_loss", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "cross-entropy of each epoch's last batch, nats"),
      assay::Metric::per_step("data_wait_ms", "ms", ASSAY_LOWER_IS_BETTER,
                              "time that the host waited for a batch that was not there yet"),
      assay::Metric::per_case("data_mb_per_s", "MB/s", ASSAY_HIGHER_IS_BETTER,
                              "bytes of samples by the time that the workers spent reading them, one worker's rate"),
      assay::Metric::per_case("loss_scale", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "fp16: the loss scale after the last step"),
      assay::Metric::per_case("skipped_steps", "steps", ASSAY_LOWER_IS_BETTER,
                              "fp16: steps without an update, their gradients not being finite; warm-up included"),
      assay::Metric::per_case("exposed_ms", "ms", ASSAY_LOWER_IS_BETTER,
                              "several ranks: what collectives held up the computation, mean of what is measured"),
      assay::Metric::word("measured_unit", unit_names, "what a measured step is"),
      assay::Metric::per_case("live_activations", "MiB", ASSAY_LOWER_IS_BETTER,
                              "activations that are alive at the fullest moment of a step, wherever they lie"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch);
  void run(const assay::Launch& launch);
  void finish(const assay::Launch& launch);
  assay::Verified verify(const assay::Launch& launch);
  assay::Work work() const;  // this rank's
  assay::Peak peak(const assay::Launch& launch);
  void silence(bool silent);

 private:
  void start(
      double loss_scale = assay::train::LossScaler::start);  // the state before the first step, rank 0's on every rank
  void take_batch(const assay::Launch& launch);
  void train_on_batch(const assay::Launch& launch);
  void enqueue_step(const assay::Launch& launch);
  void report_data(const assay::Launch& launch);
  std::int64_t batches() const;

  // verification.cpp
  void enqueue(const assay::train::EncoderDecoderModel& of, assay::compute::Backend& by) const;
  assay::train::Outcome outcome_of(const assay::train::EncoderDecoderModel& of, assay::compute::Backend& by);
  void take(assay::train::Outcome& outcome, const assay::train::EncoderDecoderModel& model) const;
  void start_later();
  void spread_later();  // what start_later() does after the start
  void repeat_step(const assay::Launch& launch);
  std::string check_start(double loss) const;
  std::string check_batches(const assay::Launch& launch);
  std::string check_operations(assay::compute::Backend& audited);
  std::string check_optimizer(const assay::Launch& launch);
  assay::Verified check_ranks(const assay::Launch& launch);
  assay::Verified check_average_of_ranks();

  const assay::train::EncoderDecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  assay::train::EncoderDecoderTrainer trainer_;
  assay::train::GradientAverage average_;
  std::unique_ptr<TrainingData> data_;
  assay::comm::SilenceableCommunicator communicator_;  // null on one rank
  std::unique_ptr<assay::compute::Graph> graph_;       // one step; null where the step is enqueued anew each time
  std::uint64_t measured_ = 0;
  double loss_scale_ = assay::train::verification_loss_scale;  // of the verification
  // Over all that is measured. Workers read ahead: a single step may see a batch delivered and none read.
  std::uint64_t delivered_bytes_ = 0;
  double read_ms_ = 0;
};

}  // namespace encoder_decoder
