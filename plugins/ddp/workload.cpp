#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/bucket_choice.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/parallel/products_beside_collectives.hpp>
#include <chrono>

namespace ddp {

namespace {

constexpr int tried_steps = 3;  // with buckets of each size

}  // namespace

Workload::Workload(const assay::Case& c)
    : host_(c.host()), settings_(c), asked_(c), trainer_(host_, settings_.trainer) {}

assay::Work Workload::work() const { return assay::models::decoder_training_work(settings_.trainer.model); }

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  trainer_.setup(launch,
                 [&] { assay::parallel::enqueue_beside_collectives(trainer_, settings_.left_multiprocessors); });
  open_communicator(steps_, host_, launch, settings_.communication, trainer_);
  const std::size_t bytes = bucket_bytes(launch);
  prepare_step(launch, bytes);
  if (settings_.strategy == assay::parallel::Strategy::overlap_bucketed)
    launch.report(bucket_mib_metric, static_cast<double>(bytes) * 0x1p-20);
  launch.report(collectives_metric, average_->collectives_in_step());
  assay::parallel::report_small_messages(launch, average_->sizes_bytes());
  restart(launch);
}

assay::Account Workload::account(const Launch&) { return trainer_.account(); }

void Workload::restart(const Launch&) {
  trainer_.start();
  assay::parallel::broadcast_parameters(trainer_, steps_.communicator());
  steps_.communicator().take_totals();
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
  steps_.forget_captured();
  average_.emplace(settings_.strategy, trainer_.parameters(), bucket_bytes, settings_.communication.last_bucket_bytes);
  average_->use(steps_.communicator());
  if (settings_.graph) steps_.capture(trainer_, [&] { enqueue_step(launch); });
}

double Workload::step_seconds(const Launch& launch, std::size_t bucket_bytes) {
  prepare_step(launch, bucket_bytes);
  const auto take = [&](int steps) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) steps_.repeat([&] { enqueue_step(launch); });
    steps_.wait(trainer_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps;
  };
  take(1);
  return take(tried_steps);
}

void Workload::run(const Launch& launch) {
  steps_.run(launch, host_, [&] { enqueue_step(launch); });
}

void Workload::silence(bool silent) {
  steps_.silence(silent);
  trainer_.leave_multiprocessors(silent ? 0 : settings_.left_multiprocessors);
  average_->use(steps_.communicator());
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  if (const auto step = steps_.take_measured()) report_communication(launch, *step);
}

}  // namespace ddp
