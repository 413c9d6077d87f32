#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <algorithm>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/open_communicator.hpp>

namespace ddp {

using assay::models::DecoderTrainer;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      trainer_(host_, settings_.trainer),
      average_(settings_.strategy, trainer_.parameters(), settings_.communication.bucket_bytes) {}

assay::Work Workload::work() const {
  const std::uint64_t forward = assay::models::decoder_forward_flops(settings_.trainer.model);
  return {.flops = 3 * forward,
          .items = static_cast<std::uint64_t>(settings_.trainer.model.rows()),
          .arithmetic = assay::workload::arithmetic_of(settings_.trainer.model.precision)};
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  launch.report(collectives_metric, average_.collectives_in_step());
  trainer_.setup(launch);
  communicator_ = assay::parallel::open_communicator(host_, launch, settings_.communication, trainer_);
  average_.use(*communicator_);
  host_.info(communicator_->description());
  start();
  communicator_->take_totals();
}

void Workload::start() {
  trainer_.start();
  assay::parallel::broadcast_parameters(trainer_, *communicator_);
}

void Workload::average_gradients() {
  average_.begin_step();
  trainer_.forward();
  trainer_.backward(average_.listener());
  average_.finish();
}

void Workload::run(const Launch& launch) {
  training_step(trainer_, launch, average_);
  // Totals are to be of the measured steps alone. Taking them blocks, which no measured step may do.
  if (launch.stage() == ASSAY_STAGE_MEASURE)
    ++measured_steps_;
  else
    communicator_->take_totals();
}

void Workload::silence(bool silent) {
  communicator_.silence(silent);
  average_.use(*communicator_);
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  const assay::comm::Totals totals = communicator_->take_totals();
  if (measured_steps_ == 0) return;
  const auto steps = static_cast<double>(measured_steps_);
  launch.report(communication_ms_metric, totals.busy_ms / steps);
  launch.report(exposed_ms_metric, totals.exposed_ms / steps);
  launch.report(communication_bytes_metric, static_cast<double>(totals.bytes) / steps);
  if (totals.busy_ms > 0) launch.report(overlap_share_metric, std::max(0.0, 1.0 - totals.exposed_ms / totals.busy_ms));
}

}  // namespace ddp
