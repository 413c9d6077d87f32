#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/comm/exchange.hpp>
#include <assay/parallel/open_communicator.hpp>

namespace context_parallel {

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      asked_(c),
      exchange_(settings_.trainer.model.context.rank, settings_.trainer.model.context.ranks),
      trainer_(host_, settings_.trainer, exchange_) {}

assay::Work Workload::work() const { return assay::models::decoder_training_work(settings_.trainer.model); }

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  trainer_.setup(launch);
  open_communicator(steps_, host_, launch, settings_.collectives, trainer_);
  steps_.communicator().register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  exchange_.use(&steps_.communicator());
  sums_.emplace(trainer_.parameters(), std::vector<assay::train::ElementRange>{}, settings_.bucket_bytes);
  sums_->use(steps_.communicator());
  if (settings_.graph) steps_.capture(trainer_, [&] { enqueue_step(launch); });
  restart(launch);
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
  sums_->use(steps_.communicator());
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

// Each rank has its terms of the mean over all tokens.
void Workload::finish(const Launch& launch) {
  const auto ranks = static_cast<double>(settings_.trainer.model.context.ranks);
  launch.report(loss_metric, ranks * assay::comm::mean_of_ranks(host_, "context_parallel.loss", trainer_.last_loss()));
  const auto step = steps_.take_measured();
  if (!step) return;
  report_communication(launch, *step);
  launch.report(assay::parallel::messages_metric, step->messages);
}

}  // namespace context_parallel
