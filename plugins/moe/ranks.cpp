// Several ranks that share the experts: their communication, their step, and whether it trained the whole model
// (verification/whole_model_check.hpp has the questions). Beside its part, each rank holds the whole model with all
// experts, on its own tokens. The gradients that ranks keep, including those of their experts, are the mean of what
// these models compute, and so are the losses. The whole model's tokens get the experts of the timed step, as two
// scores may be nearly equal.
#include <assay/device.h>
#include <assay/planning.h>
#include <assay/comm/exchange.hpp>
#include <assay/parallel/bucket_choice.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>

#include "workload.hpp"

namespace moe {

// ---- the step ------------------------------------------------------------------------------------------------------

// Before set-up, which walks through a step that reaches nobody yet.
void Workload::share_experts(const Launch&) {
  const assay::models::ExpertsConfig& e = model().experts;
  const std::int64_t rows = model().rows() * e.per_token;
  ranks_.emplace(assay::parallel::ExpertRanksShape{
      .rank = e.rank,
      .ranks = e.ranks,
      .experts = e.count,
      .rows = rows,
      .capacity = assay::models::expert_capacity(model().rows(), e.per_token, e.ranks, e.capacity_factor),
      .layers = static_cast<std::size_t>(model().expert_layers())});
  if (assay::parallel::carries_nothing_out(host_)) ranks_->assume_balanced();
  trainer_.share_experts(*ranks_);
}

void Workload::open_ranks(const Launch& launch) {
  open_communicator(steps_, host_, launch, settings_.collectives, trainer_);
  expert_communicator_ = assay::comm::SilenceableCommunicator(
      assay::comm::open_communicator(host_, launch, settings_.collectives.library, settings_.collectives.options));
  expert_communicator_->register_memory(trainer_.activation_memory().data(), trainer_.activation_memory().bytes());
  ranks_->use(&*expert_communicator_);
  sums_.emplace(trainer_.parameters(), trainer_.own_expert_ranges(), settings_.bucket_bytes);
  sums_->use(steps_.communicator());
  restart(launch);
}

void Workload::silence(bool silent) {
  if (!is_over_ranks()) return;
  steps_.silence(silent);
  ranks_->use(silent ? nullptr : &*expert_communicator_);
  sums_->use(steps_.communicator());
}

// A rank's loss is its term of it.
double Workload::reported_loss(const std::string& name) const {
  const auto ranks = static_cast<double>(model().experts.ranks);
  return ranks * assay::comm::mean_of_ranks(host_, name, trainer_.last_loss());
}

void Workload::report_ranks(const Launch& launch) {
  launch.report(loss_metric, reported_loss("moe.loss"));
  const assay::parallel::ExpertLoad load = ranks_->take_load();
  report_expert_ranks(launch, load, expert_communicator_->take_totals(), measured_steps_);
  if (load.forwards > 0) {
    launch.report(tokens_min_metric, load.least_rows);
    launch.report(tokens_mean_metric, load.mean_rows);
    launch.report(tokens_max_metric, load.most_rows);
    launch.report(tokens_variation_metric, load.variation);
  }
  if (const auto step = steps_.take_measured()) {
    report_communication(launch, *step);
    launch.report(collectives_metric, step->messages);
  }
}

// ---- verification --------------------------------------------------------------------------------------------------

assay::Verified Workload::verify_ranks(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  asked_.check(trainer_.config());
  check_experts_asked();
  return assay::verification::check_whole_model(
      host_, id, trainer_,
      {.reported_loss = [this](const std::string& name) { return reported_loss(name); },
       .common = " of what all ranks have"},
      steps_, launch, [&] { enqueue_step(launch); });
}

}  // namespace moe
