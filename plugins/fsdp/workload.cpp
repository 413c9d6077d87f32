#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/comm/exchange.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/parallel/products_beside_collectives.hpp>

namespace fsdp {

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      blocks_(c.rank(), c.rank_count(), settings_.reshard),
      trainer_(host_, settings_.trainer, &blocks_) {}

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
  report_bytes(launch);
  const bool registered = settings_.collectives.gathers != assay::parallel::Gathers::any_memory;
  assay::train::SetupMoments moments;
  if (registered)
    moments.parameter_memory = [&](std::size_t bytes) {
      communicator_ = assay::parallel::open_communicator(host_, launch, settings_.collectives);
      take_memory(registered_parameters_, ASSAY_MEMORY_PARAMETERS, bytes, "parameters");
      return registered_parameters_.data();
    };
  moments.step_taken = [&] {
    if (!communicator_) communicator_ = assay::parallel::open_communicator(host_, launch, settings_.collectives);
    take_memory(messages_, ASSAY_MEMORY_COMMUNICATION, blocks_.message_bytes(), "gathered blocks");
    blocks_.bind(messages_.data());
    assay::parallel::register_gradients(*communicator_, trainer_);
    if (registered) return;
    communicator_->register_memory(trainer_.parameter_memory(), trainer_.parameter_memory_bytes());
    communicator_->register_memory(messages_.data(), blocks_.message_bytes());
  };
  const auto enqueue = [&] {
    assay::parallel::enqueue_beside_collectives(trainer_, settings_.left_multiprocessors,
                                                [&] { trainer_.enqueue_step(); });
  };
  trainer_.setup(launch, enqueue, moments);
  blocks_.use(&*communicator_);
  if (settings_.graph)
    graphs_.capture(
        trainer_, communicator_, [&] { enqueue_step(launch); }, assay::parallel::StepGraphs::Marks::captured);
  host_.info(communicator_->description());
  communicator_->take_totals();
}

void Workload::take_memory(assay::comm::CollectiveMemory& memory, assay_memory_kind kind, std::size_t bytes,
                           const char* label) {
  assay::parallel::take_gather_memory(memory, host_, *communicator_, settings_.collectives.gathers, kind, bytes, label);
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
  graphs_.run(host_, is_silent_, [&] { enqueue_step(launch); });
  assay::parallel::count_step(launch, *communicator_, measured_steps_);
}

void Workload::silence(bool silent) {
  is_silent_ = silent;
  communicator_.silence(silent);
  blocks_.use(silent ? nullptr : &*communicator_);
  trainer_.leave_multiprocessors(silent ? 0 : settings_.left_multiprocessors);
  if (silent) graphs_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::finish(const Launch& launch) {
  const assay::comm::Totals totals = communicator_->take_totals();
  double loss = 0;
  for (const double of_rank : assay::comm::exchange(host_, "fsdp.loss", trainer_.last_loss())) loss += of_rank;
  launch.report(loss_metric, loss / static_cast<double>(communicator_->size()));
  if (measured_steps_ == 0) return;
  assay::parallel::report_messages(launch, totals, measured_steps_);
  assay::parallel::report_communication_times(launch, totals, measured_steps_);
}

}  // namespace fsdp
