#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/open_communicator.hpp>

namespace encoder_decoder {

using Marks = assay::train::Trainer::Marks;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      trainer_(host_, settings_.trainer),
      average_(assay::parallel::Strategy::overlap_bucketed, trainer_.parameters(),
               settings_.communication.bucket_bytes) {}

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
    communicator_ = assay::parallel::open_communicator(host_, launch, settings_.communication, trainer_);
    average_.use(*communicator_);
    host_.info(communicator_->description());
  }
  if (model().fused)
    graphs_.capture(
        trainer_, communicator_, [&] { enqueue_step(launch); },
        settings_.unit == Unit::step ? Marks::captured : Marks::none);
  if (communicator_) start();
  data_->loader().start_epoch(0);
  data_->loader().take_totals();
}

void Workload::start(double loss_scale) {
  trainer_.start(loss_scale);
  if (!communicator_) return;
  assay::parallel::broadcast_parameters(trainer_, *communicator_);
  communicator_->take_totals();
}

void Workload::run(const Launch& launch) {
  for (std::int64_t i = 0; i < batches(); ++i) {
    take_batch(launch);
    train_on_batch(launch);
  }
  if (settings_.unit == Unit::epoch) launch.report(epoch_loss_metric, trainer_.last_loss());
  report_data(launch);
  if (!communicator_) return;
  assay::parallel::count_step(launch, *communicator_, measured_);
}

void Workload::take_batch(const Launch& launch) {
  const auto phase = launch.phase(data_wait_phase);
  data_->loader().next(trainer_.batch());
}

void Workload::train_on_batch(const Launch& launch) {
  if (!graphs_) return enqueue_step(launch);
  if (is_silent_) return graphs_.launch_silent();
  if (settings_.unit == Unit::step) {
    graphs_.launch();
    return assay::mark_replayed(host_);
  }
  const auto phase = launch.phase(train_phase);
  graphs_.launch();
}

void Workload::report_data(const Launch& launch) {
  const assay::data::LoaderTotals totals = data_->loader().take_totals();
  launch.report(data_wait_metric, totals.wait_ms);
  if (launch.stage() != ASSAY_STAGE_MEASURE) return;
  delivered_bytes_ += totals.bytes;
  read_ms_ += totals.read_ms;
}

void Workload::silence(bool silent) {
  is_silent_ = silent;
  communicator_.silence(silent);
  average_.use(*communicator_);
  if (silent) graphs_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  if (read_ms_ > 0) launch.report(data_rate_metric, static_cast<double>(delivered_bytes_) / 1e3 / read_ms_);
  report_loss_scaling(launch, trainer_);
  if (!communicator_ || measured_ == 0) return;
  const assay::comm::Totals totals = communicator_->take_totals();
  // Within a graph nobody knows it; the phase `communication_wait` does, where steps are marked.
  if (totals.untimed == 0) launch.report(exposed_ms_metric, totals.exposed_ms / static_cast<double>(measured_));
}

}  // namespace encoder_decoder
