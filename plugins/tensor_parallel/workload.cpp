#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/parallel/open_communicator.hpp>

namespace tensor_parallel {

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      asked_(c),
      exchange_(settings_.trainer.model.split.rank, settings_.trainer.model.split.ranks),
      trainer_(host_, settings_.trainer, exchange_) {
  exchange_.share(trainer_.parameters(),
                  assay::models::decoder_shared_range(settings_.trainer.model, trainer_.parameters(), trainer_.ids()));
}

// All ranks work on one batch: what the record adds up over them is the batch once.
assay::Work Workload::work() const {
  const assay::models::DecoderConfig& model = settings_.trainer.model;
  assay::Work work = assay::models::decoder_training_work(model);
  for (std::uint64_t* of : {&work.flops, &work.items}) {
    const auto rank = static_cast<std::uint64_t>(model.split.rank),
               ranks = static_cast<std::uint64_t>(model.split.ranks);
    *of = *of / ranks + (rank < *of % ranks ? 1 : 0);
  }
  return work;
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  launch.report(assay::train::parameters_metric, trainer_.model().whole_parameter_count());
  assay::train::report_kept_bytes<Workload>(launch, trainer_);
  trainer_.setup(launch);
  open_communicator(steps_, host_, launch, settings_.collectives, trainer_);
  steps_.communicator().register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  exchange_.use(&steps_.communicator());
  if (settings_.graph) steps_.capture(trainer_, [&] { enqueue_step(launch); });
  steps_.communicator().take_totals();
}

void Workload::run(const Launch& launch) {
  steps_.run(launch, host_, [&] { enqueue_step(launch); });
}

assay::Account Workload::account(const Launch&) { return trainer_.account(); }

void Workload::restart(const Launch&) {
  trainer_.start();
  steps_.communicator().take_totals();
}

void Workload::silence(bool silent) {
  steps_.silence(silent);
  exchange_.use(silent ? nullptr : &steps_.communicator());
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, trainer_.last_loss());
  const auto step = steps_.take_measured();
  if (!step) return;
  report_communication(launch, *step);
  launch.report(assay::parallel::messages_metric, step->messages);
}

}  // namespace tensor_parallel
