// The pipeline_parallel workload: training of a decoder whose layers are shared out over the ranks in stages, through
// which micro-batches go one behind the other.
#include <assay/mesh/workload.hpp>

namespace pipeline_parallel {

using assay::Metric;
using assay::Param;
using assay::train::Receives;
namespace mesh = assay::mesh;
namespace models = assay::models;
namespace parallel = assay::parallel;

inline constexpr auto balances = assay::choices<models::StageBalance>(
    {{"work", models::StageBalance::work}, {"layers", models::StageBalance::layers}});
inline constexpr auto receive_moments =
    assay::choices<Receives>({{"beside_work", Receives::beside_work}, {"between_works", Receives::between_works}});

struct Tables {
  static constexpr auto id = "pipeline_parallel";
  static constexpr auto summary = "decoder training with layers in stages over the ranks, one forward one backward";
  static constexpr auto params = assay::join(
      assay::table(Param::integer("virtual_stages", 1)
                       .at_least(1)
                       .at_most(1 << 10)
                       .help("stages of a rank. 1: one forward, one backward; more: interleaved, every ranks-th stage "
                             "is a rank's, and micro-batches are a multiple of the ranks"),
                   Param::choice("balance", models::StageBalance::work, balances)
                       .help("what is shared out evenly. work: operations of products, with the head's; layers: "
                             "layers, with the head on the last rank as well"),
                   Param::choice("receives", assay::train::usual_receives, receive_moments)
                       .help("when a rank starts to receive what comes while it works. between_works: after that work, "
                             "so that a waiting receive takes no multiprocessors from the products; beside_work: "
                             "before it, so that messages travel beside it")),
      mesh::replica_params,
      mesh::decoder_params(
          assay::join(models::dimension_params,
                      models::batch_params("sequences in a micro-batch of a replica, whatever the ranks"),
                      models::sequence_params),
          parallel::rank_execution_params, assay::train::elementwise_optimizer_params),
      parallel::collective_params);
  static constexpr auto phases = assay::table(assay::train::forward_phase, assay::train::backward_phase,
                                              assay::phase("bubble"), assay::train::optimizer_phase);
  static constexpr auto loss_metric = Metric::per_case("loss").help(
      "cross-entropy of the last step, nats, which the last rank has; mean of the replicas");
  static constexpr auto bubble_formula_metric =
      Metric::per_case("bubble_formula")
          .lower_is_better()
          .help(
              "(p - 1) / (v m + p - 1) of p ranks, v virtual stages and m micro-batches: the share of forward and "
              "backward that a rank waits where all stages take equally long and messages no time; bubble.share is "
              "the measured one");
  static constexpr auto bubble_by_work_metric =
      Metric::per_case("bubble_by_work")
          .lower_is_better()
          .help(
              "1 - m mean(w) / (m max(w) + (sum(w) - max(w)) / v) of the operations w of each rank's stages on a "
              "micro-batch (Zheng et al. 2022, arXiv:2201.12023, of v = 1): bubble_formula where stages differ");
  static constexpr auto head_layers_metric =
      Metric::per_case("head_layers").help("operations of the head's product, in those of a layer");
  static constexpr auto stage_layers_metric = Metric::per_case("stage_layers").help("layers of a rank");
  static constexpr auto kept_micro_batches_metric =
      Metric::per_case("kept_micro_batches")
          .lower_is_better()
          .help(
              "micro-batches between forward and backward, at most, summed over a rank's stages: each has memory for "
              "a stage's activations");
  static constexpr auto sent_bytes_metric = Metric::per_case("sent_bytes")
                                                .unit("bytes")
                                                .lower_is_better()
                                                .help("that a rank sends to its neighbours in a step");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::train::kept_bytes_metrics,
                  assay::table(bubble_formula_metric, bubble_by_work_metric, head_layers_metric, stage_layers_metric,
                               kept_micro_batches_metric, sent_bytes_metric),
                  parallel::communication_metrics, assay::table(parallel::messages_metric), parallel::replica_metrics);

  static mesh::Strategy strategy(const assay::Case& c) {
    models::DecoderTrainerConfig config = models::decoder_trainer_config(c);
    const mesh::Axes axes = mesh::axes_of(c);
    config.model.stages = {.rank = axes.place,
                           .ranks = axes.ranks,
                           .virtual_stages = c.get<std::int64_t>("virtual_stages"),
                           .balance = c.choice("balance", balances),
                           .receives = c.choice("receives", receive_moments)};
    config = mesh::of_one_batch(c, std::move(config), axes);
    assay::train::require_order(models::pipeline_shape(config.model));
    return {.trainer = std::move(config),
            .shares = mesh::Shares::stages,
            .axes = axes,
            .loss = mesh::ReportedLoss::sum_of_ranks,
            .graph = assay::workload::is_graph(c),
            .collectives = parallel::CollectiveSettings(c)};
  }

  static void report_set_up(const auto& launch, const mesh::SetUp& found) {
    const models::DecoderConfig& model = found.trainer.config().model;
    const assay::train::PipelineShape shape = models::pipeline_shape(model);
    const models::StageDivision division = models::stage_division(model);
    launch.report(bubble_formula_metric, assay::train::pipeline_bubble_share(shape));
    launch.report(bubble_by_work_metric, assay::train::pipeline_bubble_share(shape, models::work_of_ranks(division)));
    launch.report(head_layers_metric, division.head_layers);
    std::int64_t layers = model.layers, kept = 1;
    std::uint64_t sent_bytes = 0;
    if (model.is_pipelined()) {
      const models::DecoderPipeline& pipeline = found.trainer.pipeline();
      layers = kept = 0;
      for (std::int64_t chunk = 0; chunk < model.stages.virtual_stages; ++chunk)
        layers += models::config_of_chunk(model, chunk).layers;
      for (const std::int64_t places : pipeline.schedule().activation_places()) kept += places;
      sent_bytes = pipeline.sent_bytes();
    }
    launch.report(stage_layers_metric, layers);
    launch.report(kept_micro_batches_metric, kept);
    launch.report(sent_bytes_metric, sent_bytes);
  }
};

}  // namespace pipeline_parallel

ASSAY_PLUGIN("org.assay.pipeline_parallel", "1.0.0", assay::mesh::Workload<pipeline_parallel::Tables>)
