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
