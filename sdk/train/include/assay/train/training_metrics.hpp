// Metrics that workloads which train have in common, and what reports them. A workload has the rows in its own table.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/trainer.hpp>

namespace assay::train {

inline constexpr auto parameters_metric = Metric::per_case("parameters").help("number of trainable parameters");
inline constexpr auto live_activations_metric =
    Metric::per_case("live_activations")
        .unit("MiB")
        .lower_is_better()
        .help("activations that are alive at the fullest moment of a step, wherever they lie");
// Of workloads on several ranks: what a rank keeps.
inline constexpr auto parameter_bytes_metric =
    Metric::per_case("parameter_bytes")
        .unit("bytes")
        .lower_is_better()
        .help("of the parameters that a rank keeps: weights that the optimizer updates and, in bf16, their copy");
inline constexpr auto gradient_bytes_metric = Metric::per_case("gradient_bytes")
                                                  .unit("bytes")
                                                  .lower_is_better()
                                                  .help("of the gradients that a rank keeps for the update");
inline constexpr auto optimizer_state_bytes_metric =
    Metric::per_case("optimizer_state_bytes").unit("bytes").lower_is_better().help("moments that a rank keeps");
inline constexpr auto kept_bytes_metrics =
    table(parameter_bytes_metric, gradient_bytes_metric, optimizer_state_bytes_metric);
inline constexpr auto loss_scale_metric =
    Metric::per_case("loss_scale").help("fp16: the loss scale after the last step");
inline constexpr auto skipped_steps_metric =
    Metric::per_case("skipped_steps")
        .unit("steps")
        .lower_is_better()
        .help("fp16: steps without an update, their gradients not being finite; warm-up included");

template <class Workload>
void report_parameters(const LaunchOf<Workload>& launch, const Trainer& trainer) {
  launch.report(parameters_metric, trainer.parameters().parameter_count());
}

template <class Workload>
void report_kept_bytes(const LaunchOf<Workload>& launch, const Trainer& trainer) {
  const ParameterSet& kept = trainer.parameters();
  launch.report(parameter_bytes_metric, kept.value_bytes() + kept.copy_bytes());
  launch.report(gradient_bytes_metric, kept.gradient_bytes());
  launch.report(optimizer_state_bytes_metric, trainer.optimizer().moment_bytes());
}

template <class Workload>
void report_live_activations(const LaunchOf<Workload>& launch, const BufferPlan& plan) {
  launch.report(live_activations_metric, static_cast<double>(plan.peak_live_bytes()) / (1 << 20));
}

// Where the loss is scaled. Blocks.
template <class Workload>
void report_loss_scaling(const LaunchOf<Workload>& launch, const Trainer& trainer) {
  const LossScaler& scaler = trainer.scaler();
  if (!scaler.active()) return;
  launch.report(loss_scale_metric, scaler.scale(trainer.backend()));
  launch.report(skipped_steps_metric, scaler.skipped_steps(trainer.backend()));
}

}  // namespace assay::train
