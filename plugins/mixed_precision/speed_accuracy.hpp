// The workload mixed_precision:speed_accuracy: what a precision does to a decoder's training: the time of a step, the
// loss after some steps against that of fp32, and the error of the gradients against float64.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/decoder_params.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/workload/execution.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats.hpp"

namespace mixed_precision {

// The batch of the updates before `loss`: the one that is timed, or a new one each that can be learnt (chain.hpp).
enum class Sequences { batch, chain };
inline constexpr auto sequences_names =
    assay::choices<Sequences>({{"batch", Sequences::batch}, {"chain", Sequences::chain}});
enum class Reference { fp64, fp32 };
inline constexpr auto references = assay::choices<Reference>({{"fp64", Reference::fp64}, {"fp32", Reference::fp32}});

inline constexpr auto speed_accuracy_params = assay::join(
    assay::table(assay::Param::choice("precision", "fp32", assay::workload::precision_names_with_fp8)
                     .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all "
                           "bf16; tf32, fp16: cuda; fp8: as bf16, the blocks' products in 8 bits, or but for "
                           "weights' gradients (fp8_dw_bf16): graph")),
    assay::models::model_params, assay::models::attention_params, assay::train::elementwise_optimizer_params,
    assay::models::checkpointing_params,
    assay::table(assay::Param::choice("execution", assay::workload::Execution::graph, assay::workload::executions)
                     .help("eager: one operation at a time, unfused; graph: fused, captured as one graph on CUDA"),
                 assay::Param::integer("loss_steps", 20)
                     .at_least(1)
                     .at_most(1 << 20)
                     .unit("steps")
                     .help("updates before the loss that is compared"),
                 assay::Param::choice("data", Sequences::batch, sequences_names)
                     .help("of these updates: batch, the timed one each time; chain, new sequences each time, which "
                           "can be learnt"),
                 assay::Param::choice("reference", Reference::fp64, references)
                     .help("of the gradients: fp64 on the host, of one sequence; or fp32 on the device"),
                 assay::Param::integer("reference_context", 64)
                     .at_least(1)
                     .at_most(1 << 20)
                     .unit("tokens")
                     .help("tokens of the sequence whose gradients are compared; at most context_length")));

class SpeedAccuracy {
 public:
  static constexpr auto id = "speed_accuracy";
  static constexpr auto summary = "what a precision does to a decoder's training: time, loss, errors of the gradients";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = speed_accuracy_params;
  static constexpr auto presets = assay::models::model_presets;
  static constexpr auto phases = assay::train::training_phases;
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the step after `loss_steps` updates, nats");
  static constexpr auto loss_difference_metric =
      assay::Metric::per_case("loss_difference").help("loss less the loss of fp32, same start and batches");
  static constexpr auto skipped_steps_metric =
      assay::Metric::per_case("skipped_steps")
          .unit("steps")
          .lower_is_better()
          .help("fp16: of loss_steps, those without an update, a gradient being not finite");
  static constexpr auto gradient_reference_metric =
      assay::Metric::word("gradient_reference", references).help("what gradient_error compares with");
  static constexpr auto gradient_error_metric =
      assay::Metric::per_case("gradient_error")
          .unit("%")
          .lower_is_better()
          .help("relative error of the gradients by all parameters at the start, in the Euclidean norm");
  static constexpr auto metrics = assay::table(assay::train::parameters_metric, loss_metric, loss_difference_metric,
                                               skipped_steps_metric, gradient_reference_metric, gradient_error_metric);
  using Launch = assay::LaunchOf<SpeedAccuracy>;

  explicit SpeedAccuracy(const assay::Case& c);  // throws assay::Error
  void setup(const Launch& launch);
  void run(const Launch& launch);
  assay::Account account(const Launch&) { return trainer_->account(); }
  void restart(const Launch&) { trainer_->start(); }
  std::string verify(const Launch& launch);  // reports loss and errors
  assay::Work work() const;

 private:
  using Gradients = std::vector<std::vector<float>>;  // by parameter
  struct Accuracy {
    double loss = 0;  // in the step after loss_steps updates
    double skipped_steps = 0;
    Gradients gradients;  // for the sequence that is compared, from the start; multiplied by `scale`
    double scale = 1;
  };

  const assay::models::DecoderConfig& model() const { return config_.model; }
  assay::models::DecoderConfig compared_model(assay::models::DecoderConfig config) const;
  double reference_gflop() const;
  bool has_exact_reference() const { return reference_ == Reference::fp64; }
  void enqueue_timed(const Launch& launch);
  std::string check_operations(const Launch& launch);  // ends the graph
  Accuracy accuracy_of(assay::models::DecoderTrainer& trainer) const;
  Gradients exact_gradients(const assay::models::DecoderTrainer& fp32) const;

  assay::Host host_;
  assay::models::DecoderTrainerConfig config_;
  std::int64_t loss_steps_, reference_context_;
  Sequences data_;
  Reference reference_;  // of the gradients
  bool is_fp32_;
  std::optional<assay::models::DecoderTrainer> trainer_;  // until verify makes room for the fp32 one
  std::unique_ptr<assay::compute::Graph> graph_;
};

}  // namespace mixed_precision
