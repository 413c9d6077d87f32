#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/bucket_choice.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/parallel/products_beside_collectives.hpp>
#include <chrono>

namespace ddp {

using assay::models::DecoderTrainer;
namespace {

constexpr int tried_steps = 3;  // with buckets of each size

}  // namespace

Workload::Workload(const assay::Case& c) : host_(c.host()), settings_(c), trainer_(host_, settings_.trainer) {}

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
  trainer_.setup(launch, [&] {
    assay::parallel::enqueue_beside_collectives(trainer_, settings_.left_multiprocessors,
                                                [&] { trainer_.enqueue_step(); });
  });
  communicator_ = assay::parallel::open_communicator(host_, launch, settings_.communication, trainer_);
  host_.info(communicator_->description());
  const std::size_t bytes = bucket_bytes(launch);
  prepare_step(launch, bytes);
  if (settings_.strategy == assay::parallel::Strategy::overlap_bucketed)
    launch.report(bucket_mib_metric, static_cast<double>(bytes) * 0x1p-20);
  launch.report(collectives_metric, average_->collectives_in_step());
  assay::parallel::report_small_messages(launch, average_->sizes_bytes());
  start();
  communicator_->take_totals();
}

std::size_t Workload::bucket_bytes(const Launch& launch) {
  if (settings_.communication.bucket_bytes != 0 || settings_.strategy != assay::parallel::Strategy::overlap_bucketed)
    return settings_.communication.bucket_bytes;
  const assay::parallel::BucketChoice choice = assay::parallel::choose_bucket_bytes(
      host_, "ddp.buckets", assay::parallel::bucket_candidates(trainer_.parameters().gradient_bytes()),
      [&](std::size_t bytes) { return step_seconds(launch, bytes); });
  host_.info(choice.text);
  return choice.bytes;
}

void Workload::prepare_step(const Launch& launch, std::size_t bucket_bytes) {
  graphs_.reset();
  average_.emplace(settings_.strategy, trainer_.parameters(), bucket_bytes);
  average_->use(*communicator_);
  if (settings_.graph)
    graphs_.capture(
        trainer_, communicator_, [&] { enqueue_step(launch); }, assay::parallel::StepGraphs::Marks::captured);
}

double Workload::step_seconds(const Launch& launch, std::size_t bucket_bytes) {
  prepare_step(launch, bucket_bytes);
  const auto take = [&](int steps) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) graphs_ ? graphs_.launch() : enqueue_step(launch);
    communicator_->synchronize();
    trainer_.backend().synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps;
  };
  take(1);
  return take(tried_steps);
}

void Workload::start() {
  trainer_.start();
  assay::parallel::broadcast_parameters(trainer_, *communicator_);
}

void Workload::average_gradients() {
  average_->begin_step();
  trainer_.forward();
  trainer_.backward(average_->listener());
  average_->finish();
}

void Workload::run(const Launch& launch) {
  graphs_.run(host_, is_silent_, [&] { enqueue_step(launch); });
  assay::parallel::count_step(launch, *communicator_, measured_steps_);
}

void Workload::silence(bool silent) {
  is_silent_ = silent;
  communicator_.silence(silent);
  trainer_.leave_multiprocessors(silent ? 0 : settings_.left_multiprocessors);
  average_->use(*communicator_);
  if (silent) graphs_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  const assay::comm::Totals totals = communicator_->take_totals();
  if (measured_steps_ == 0) return;
  launch.report(assay::parallel::communication_bytes_metric,
                static_cast<double>(totals.bytes) / static_cast<double>(measured_steps_));
  assay::parallel::report_communication_times(launch, totals, measured_steps_);
}

}  // namespace ddp
