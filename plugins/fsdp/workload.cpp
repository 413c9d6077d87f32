#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/comm/exchange.hpp>
#include <assay/parallel/products_beside_collectives.hpp>

namespace fsdp {

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      asked_(c),
      blocks_(c.rank(), c.rank_count(), settings_.blocks),
      trainer_(host_, settings_.trainer, &blocks_) {}

assay::Work Workload::work() const { return assay::models::decoder_training_work(settings_.trainer.model); }

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

void Workload::setup(const Launch& launch) {
  report_bytes(launch);
  const auto& collectives = settings_.collectives;
  assay::train::SetupMoments moments;
  moments.parameter_memory = take_gathered_parameters(registered_parameters_, steps_, host_, launch, collectives);
  moments.step_taken = [&] {
    open_and_register(steps_, host_, launch, collectives, trainer_);
    assay::parallel::take_gather_memory(messages_, host_, steps_.communicator(), collectives.gathers,
                                        ASSAY_MEMORY_COMMUNICATION, blocks_.message_bytes(), "gathered blocks");
    blocks_.bind(messages_.data());
    if (collectives.gathers == assay::parallel::Gathers::any_memory)
      steps_.communicator().register_memory(messages_.data(), blocks_.message_bytes());
  };
  const auto enqueue = [&] { assay::parallel::enqueue_beside_collectives(trainer_, settings_.left_multiprocessors); };
  trainer_.setup(launch, enqueue, moments);
  blocks_.use(&steps_.communicator());
  if (settings_.graph) steps_.capture(trainer_, [&] { enqueue_step(launch); });
  steps_.communicator().take_totals();
}

void Workload::report_bytes(const Launch& launch) const {
  const assay::train::ParameterSet& kept = trainer_.parameters();
  const auto state = static_cast<std::int64_t>(trainer_.optimizer().moment_bytes());
  launch.report(assay::train::parameters_metric, trainer_.model_parameters().parameter_count());
  assay::train::report_kept_bytes<Workload>(launch, trainer_);
  launch.report(gathered_bytes_metric, blocks_.message_bytes());
  launch.report(shard_padding_bytes_metric, blocks_.padding_elements() * (state / kept.arena_elements()));
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
  blocks_.use(silent ? nullptr : &steps_.communicator());
  trainer_.leave_multiprocessors(silent ? 0 : settings_.left_multiprocessors);
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  launch.report(loss_metric, assay::comm::mean_of_ranks(host_, "fsdp.loss", trainer_.last_loss()));
  const auto step = steps_.take_measured();
  if (!step) return;
  report_communication(launch, *step);
  launch.report(assay::parallel::messages_metric, step->messages);
}

}  // namespace fsdp
