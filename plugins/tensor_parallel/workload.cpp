#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/open_communicator.hpp>

namespace tensor_parallel {

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      others_(settings_.trainer.model.split.rank, settings_.trainer.model.split.ranks),
      trainer_(host_, settings_.trainer, others_) {
  others_.share(trainer_.parameters(),
                assay::models::decoder_shared_range(settings_.trainer.model, trainer_.parameters(), trainer_.ids()));
}

// All ranks work on one batch: what the record adds up over them is the batch once.
assay::Work Workload::work() const {
  const assay::models::DecoderConfig& model = settings_.trainer.model;
  const auto share_of = [&](std::uint64_t whole) {
    const auto rank = static_cast<std::uint64_t>(model.split.rank),
               ranks = static_cast<std::uint64_t>(model.split.ranks);
    return whole / ranks + (rank < whole % ranks ? 1 : 0);
  };
  return {.flops = share_of(3 * assay::models::decoder_forward_flops(model)),
          .items = share_of(static_cast<std::uint64_t>(model.rows())),
          .arithmetic = assay::workload::arithmetic_of(model.precision)};
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  launch.report(assay::train::parameters_metric, trainer_.model().whole_parameter_count());
  assay::train::report_kept_bytes<Workload>(launch, trainer_);
  trainer_.setup(launch);
  communicator_ = assay::parallel::open_communicator(host_, launch, settings_.collectives, trainer_);
  communicator_->register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  others_.use(&*communicator_);
  host_.info(communicator_->description());
  if (settings_.graph)
    graphs_.capture(
        trainer_, communicator_, [&] { enqueue_step(launch); }, assay::parallel::StepGraphs::Marks::captured);
  communicator_->take_totals();
}

void Workload::run(const Launch& launch) {
  graphs_.run(host_, is_silent_, [&] { enqueue_step(launch); });
  assay::parallel::count_step(launch, *communicator_, measured_steps_);
}

void Workload::silence(bool silent) {
  is_silent_ = silent;
  communicator_.silence(silent);
  others_.use(silent ? nullptr : &*communicator_);
  if (silent) graphs_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  const assay::comm::Totals totals = communicator_->take_totals();
  if (measured_steps_ == 0) return;
  assay::parallel::report_messages(launch, totals, measured_steps_);
  assay::parallel::report_communication_times(launch, totals, measured_steps_);
}

}  // namespace tensor_parallel
