#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/open_communicator.hpp>

namespace encoder_decoder {

using Marks = assay::train::Trainer::Marks;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      configured_(c, settings_),
      trainer_(host_, settings_.trainer),
      average_(assay::parallel::AverageMode::overlap_bucketed, trainer_.parameters(),
               settings_.communication.bucket_bytes, settings_.communication.last_bucket_bytes) {}

std::int64_t Workload::batches() const {
  const assay::data::LoaderConfig& loader = settings_.data.loader;
  return settings_.unit == Unit::step ? 1 : settings_.data.dataset.samples / (loader.batch_size * loader.ranks);
}

assay::Work Workload::work() const {
  const auto steps = static_cast<std::uint64_t>(batches());
  return {.flops = steps * 3 * assay::models::encoder_decoder_forward_flops(model()),
          .items = steps * static_cast<std::uint64_t>(model().batch_size),
          .arithmetic = assay::workload::arithmetic_of(model().precision)};
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, model().precision);
}

void Workload::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  launch.report(samples_per_batch_metric, model().batch_size);
  launch.report(precision_metric, settings_.precision);
  launch.report(batches_metric, batches());
  launch.report(unit_metric, settings_.unit);
  report_live_activations(launch, trainer_.model().plan());
  trainer_.setup(launch);
  data_ = std::make_unique<TrainingData>(host_, settings_.data, trainer_.backend());
  data_->loader().start_epoch(0);
  data_->loader().next(trainer_.batch());
  if (settings_.ranks > 1) {
    open_communicator(steps_, host_, launch, settings_.communication, trainer_);
    average_.use(steps_.communicator());
  }
  if (model().fused)
    steps_.capture(
        trainer_, [&] { enqueue_step(launch); }, settings_.unit == Unit::step ? Marks::captured : Marks::none);
  if (steps_.communicate()) start();
  data_->loader().start_epoch(0);
  data_->loader().take_totals();
  trained_ = 0;
}

void Workload::start(double loss_scale) {
  trainer_.start(loss_scale);
  if (!steps_.communicate()) return;
  assay::parallel::broadcast_parameters(trainer_, steps_.communicator());
  steps_.communicator().take_totals();
}

// A step of an epoch is all of its batches; each has counted and marked itself.
assay::Account Workload::account(const Launch&) {
  assay::Account account = trainer_.account();
  const auto batches_of_step = static_cast<std::uint64_t>(batches());
  if (account.steps % batches_of_step != 0)
    throw assay::Error(ASSAY_WRONG_RESULT, std::to_string(account.steps) +
                                               " batches were trained on, which are no "
                                               "whole number of epochs of " +
                                               std::to_string(batches_of_step));
  account.steps /= batches_of_step;
  account.marks_per_step *= batches_of_step;
  return account;
}

void Workload::restart(const Launch&) {
  start();
  data_->loader().start_epoch(0);
  data_->loader().take_totals();
  trained_ = 0;
}

void Workload::run(const Launch& launch) {
  for (std::int64_t i = 0; i < batches(); ++i) {
    take_batch(launch);
    train_on_batch(launch);
  }
  if (settings_.unit == Unit::epoch) launch.report(epoch_loss_metric, trainer_.last_loss());
  report_data(launch);
  steps_.count(launch);
}

void Workload::take_batch(const Launch& launch) {
  const auto phase = launch.phase(data_wait_phase);
  data_->loader().next(trainer_.batch());
}

// Of an epoch the captured steps are one phase: none of theirs is marked.
void Workload::train_on_batch(const Launch& launch) {
  ++trained_;
  const auto enqueue = [&] { enqueue_step(launch); };
  if (settings_.unit == Unit::step || !steps_.are_captured() || steps_.are_silent())
    return steps_.enqueue(host_, enqueue);
  const auto phase = launch.phase(train_phase);
  steps_.repeat(enqueue);
}

void Workload::report_data(const Launch& launch) {
  const assay::data::LoaderTotals totals = data_->loader().take_totals();
  launch.report(data_wait_metric, totals.wait_ms);
  if (launch.stage() != ASSAY_STAGE_MEASURE) return;
  delivered_bytes_ += totals.bytes;
  read_ms_ += totals.read_ms;
}

void Workload::silence(bool silent) {
  steps_.silence(silent);
  average_.use(steps_.communicator());
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  if (read_ms_ > 0) launch.report(data_rate_metric, static_cast<double>(delivered_bytes_) / 1e3 / read_ms_);
  report_loss_scaling(launch, trainer_);
  // Within a graph nobody knows it; the phase `communication_wait` does, where steps are marked.
  if (const auto step = steps_.take_measured(); step && step->times)
    launch.report(exposed_ms_metric, step->times->exposed_ms);
}

}  // namespace encoder_decoder
