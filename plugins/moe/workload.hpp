// The moe workload: one step of a decoder Transformer whose feed-forward is a mixture of experts, in three phases.
#pragma once
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/expert_metrics.hpp>
#include <assay/parallel/gradient_average.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>
#include <assay/verification/path_check.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "settings.hpp"

namespace moe {

// The parameters of experts by name, as the case has them (verification.cpp).
std::vector<std::pair<const char*, double>> asked_experts(const assay::Case& c);

class Workload {
 public:
  static constexpr auto id = "moe";
  static constexpr auto summary = "decoder Transformer with a mixture of experts: forward, backward, optimizer step";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = moe::params;
  static constexpr auto presets = moe::presets;
  static constexpr auto phases = assay::train::rank_training_phases;
  static constexpr auto active_parameters_metric =
      assay::Metric::per_case("active_parameters").help("parameters that one token uses");
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
  static constexpr auto balance_loss_metric =
      assay::Metric::per_case("balance_loss")
          .lower_is_better()
          .help("load-balancing loss of the last step, the mean of layers, without its coefficient; 1: balanced");
  static constexpr auto z_loss_metric =
      assay::Metric::per_case("z_loss").lower_is_better().help("router's z loss of the last step, likewise");
  static constexpr auto tokens_min_metric = assay::Metric::per_case("tokens_by_expert_min")
                                                .unit("tokens")
                                                .help(
                                                    "of the expert with the fewest, in any layer, in the last step; on "
                                                    "several ranks of the tokens of all, mean over layers and steps");
  static constexpr auto tokens_mean_metric =
      assay::Metric::per_case("tokens_by_expert_mean")
          .unit("tokens")
          .help("of an expert, in the last step; on several ranks of the tokens of all");
  static constexpr auto tokens_max_metric =
      assay::Metric::per_case("tokens_by_expert_max")
          .unit("tokens")
          .help(
              "of the expert with the most, in any layer, in the last step; on several ranks as tokens_by_expert_min");
  static constexpr auto tokens_variation_metric =
      assay::Metric::per_case("tokens_by_expert_variation")
          .lower_is_better()
          .help("standard deviation over mean of an expert's tokens, over all layers, in the last step");
  static constexpr auto collectives_metric =
      assay::Metric::per_case("collectives").help("all-reduces in a step, of what all ranks have");
  static constexpr auto metrics = assay::join(
      assay::table(assay::train::parameters_metric, active_parameters_metric, loss_metric, balance_loss_metric,
                   z_loss_metric, tokens_min_metric, tokens_mean_metric, tokens_max_metric, tokens_variation_metric,
                   assay::train::loss_scale_metric, assay::train::skipped_steps_metric,
                   assay::train::live_activations_metric),
      assay::parallel::communication_metrics, assay::table(collectives_metric), assay::parallel::expert_rank_metrics);
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Account account(const Launch& launch);
  void restart(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Peak peak(const Launch& launch);
  assay::Work work() const;
  void silence(bool silent);

 private:
  // ranks.cpp: several ranks
  bool is_over_ranks() const { return model().experts.is_over_ranks(); }
  void share_experts(const Launch& launch);
  void open_ranks(const Launch& launch);
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch) {
    if (sums_) return training_step(trainer_, launch, *sums_);
    training_step(trainer_, launch);
  }
  double reported_loss(const std::string& name) const;  // of the last step; every rank calls it, once per name
  void report_ranks(const Launch& launch);
  assay::Verified verify_ranks(const Launch& launch);

  // verification.cpp; what returns text says what it found right, or throws WRONG_RESULT
  void check_experts_asked() const;
  void enqueue_timed(const Launch& launch);
  void enqueue(const assay::models::DecoderModel& of, assay::compute::Backend& by) const;
  void check_operations(assay::compute::Backend& audited, double loss_scale);
  std::string compare_with(const std::string& what, const assay::verification::Outcome& timed,
                           const assay::models::DecoderModel& other) const;
  assay::compute::Tensor compared(std::size_t index) const;
  assay::verification::Outcome timed_outcome(const Launch& launch, std::string& text, double& loss_scale);
  std::string check_start(double loss) const;

  const assay::models::DecoderConfig& model() const { return settings_.trainer.model; }

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  std::vector<std::pair<const char*, double>> asked_experts_;
  std::optional<assay::parallel::ExpertRanks> ranks_;  // outlives the trainer, which moves rows by it
  assay::models::DecoderTrainer trainer_;
  std::optional<assay::parallel::GradientAverage> sums_;
  assay::comm::SilenceableCommunicator expert_communicator_;  // of rows alone, so that sums of gradients hold up none
  assay::parallel::RankSteps steps_;
  std::uint64_t measured_steps_ = 0;
  std::unique_ptr<assay::compute::Graph> graph_;  // one step; null where the step is enqueued anew each time
};

}  // namespace moe
