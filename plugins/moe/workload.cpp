#include "workload.hpp"

#include <assay/models/decoder_dump.hpp>
#include <assay/verification/experts_check.hpp>
#include <assay/workload/peak.hpp>

namespace moe {

using Marks = assay::train::Trainer::Marks;

Workload::Workload(const assay::Case& c)
    : host_(c.host()), settings_(c), asked_(c), asked_experts_(asked_experts(c)), trainer_(host_, settings_.trainer) {
  trainer_.leave_multiprocessors(settings_.left_multiprocessors);
}

assay::Work Workload::work() const {
  const auto micro_batches = static_cast<std::uint64_t>(model().accumulation_steps);
  const auto n = static_cast<std::uint64_t>(trainer_.parameters().parameter_count());  // of this rank
  const std::int64_t all = assay::models::whole_parameters(model(), trainer_.parameters().parameter_count());
  const auto active = static_cast<std::uint64_t>(assay::models::active_parameters(model(), all));
  const std::uint64_t weight = assay::compute::size_of(model().precision.activation);
  const std::uint64_t gradient = assay::compute::size_of(model().precision.gradient);
  const std::uint64_t state = assay::compute::size_of(model().precision.state);
  const std::uint64_t master = assay::compute::size_of(model().precision.parameter);
  // As the decoder's, but for weights that are read: of experts those of one token at least.
  std::uint64_t bytes = 2 * micro_batches * active * weight + (2 * micro_batches - 1) * n * gradient;
  if (settings_.pass == Pass::train_step) bytes += n * (gradient + 2 * master + 4 * state);
  // A dropped gradient is neither written nor read.
  bytes -= 2 * trainer_.parameters().shown_gradient_bytes();
  // Of Muon's matrices there is one moment.
  if (const assay::train::Muon* const muon = trainer_.optimizer().muon(); muon && settings_.pass == Pass::train_step)
    bytes -= static_cast<std::uint64_t>(muon->elements()) * 2 * state;
  assay::Work work = assay::models::decoder_training_work(model());
  work.bytes = bytes;
  return work;
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, model().precision);
}

void Workload::setup(const Launch& launch) {
  const std::int64_t all = assay::models::whole_parameters(model(), trainer_.parameters().parameter_count());
  launch.report(assay::train::parameters_metric, all);
  launch.report(active_parameters_metric, assay::models::active_parameters(model(), all));
  report_live_activations(launch, trainer_.model().plan());
  if (is_over_ranks()) share_experts(launch);
  trainer_.setup(launch);
  if (is_over_ranks()) return open_ranks(launch);
  if (model().fused) graph_ = trainer_.capture([&] { training_step(trainer_, launch); }, Marks::captured);
}

void Workload::run(const Launch& launch) {
  if (is_over_ranks()) {
    steps_.run(launch, host_, [&] { enqueue_step(launch); });
    if (steps_.are_silent()) return;
    if (launch.stage() == ASSAY_STAGE_MEASURE) {
      ++measured_steps_;
    } else {
      expert_communicator_->take_totals();
      (void)ranks_->take_load();
    }
    return;
  }
  if (!graph_) return training_step(trainer_, launch);
  graph_->launch();
  assay::mark_replayed(host_);
}

assay::Account Workload::account(const Launch&) { return trainer_.account(); }

// A repeated step shows its gradients, as one that is verified does, so that the marks of the timed ones, which drop
// them, are held against it.
void Workload::restart(const Launch&) {
  trainer_.show_gradients();
  trainer_.start();
}

void Workload::finish(const Launch& launch) {
  if (is_over_ranks())
    report_ranks(launch);
  else
    launch.report(loss_metric, trainer_.last_loss());
  report_loss_scaling(launch, trainer_);
  if (model().expert_layers() > 0) {
    const auto figures = assay::verification::routing_figures(trainer_.backend(), trainer_.model());
    launch.report(balance_loss_metric, figures.balance);
    launch.report(z_loss_metric, figures.z);
    if (!is_over_ranks()) {
      launch.report(tokens_min_metric, figures.least);
      launch.report(tokens_mean_metric, figures.mean);
      launch.report(tokens_max_metric, figures.most);
      launch.report(tokens_variation_metric, figures.variation);
    }
  }
  if (!settings_.dump_file.empty()) assay::models::dump_step(trainer_, settings_.dump_file);
}

}  // namespace moe
