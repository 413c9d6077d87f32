// The tensor_parallel workload: training of a decoder whose products are split over the ranks, by columns and rows of
// its matrices.
#include <assay/mesh/workload.hpp>

namespace tensor_parallel {

using assay::Param;
namespace mesh = assay::mesh;
namespace models = assay::models;
namespace parallel = assay::parallel;

struct Tables {
  static constexpr auto id = "tensor_parallel";
  static constexpr auto summary = "decoder training with products split over the ranks and sequence-parallel norms";
  static constexpr auto params = assay::join(
      assay::table(Param::boolean("sequence_parallel", true)
                       .help("true: a rank has norms and residual stream of its part of the rows, gathered before a "
                             "product and reduce-scattered after it; false: of all rows, with an all-reduce after it"),
                   Param::integer("communication_chunks", 1)
                       .at_least(1)
                       .at_most(64)
                       .help("rows are exchanged in so many chunks, and a chunk's exchange runs beside the products "
                             "of the next one; 1: whole")),
      mesh::replica_params,
      mesh::decoder_params(models::shared_model_params, parallel::rank_execution_params,
                           assay::train::elementwise_optimizer_params),
      parallel::collective_params);
  static constexpr auto loss_metric = assay::Metric::per_case("loss").help(
      "cross-entropy of the last step, nats, the same on every rank; mean of the replicas");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::train::kept_bytes_metrics,
                  parallel::communication_metrics, assay::table(parallel::messages_metric), parallel::replica_metrics);

  static mesh::Strategy strategy(const assay::Case& c) {
    models::DecoderTrainerConfig config = models::decoder_trainer_config(c);
    const mesh::Axes axes = mesh::axes_of(c);
    config.model.split = {.rank = axes.place,
                          .ranks = axes.ranks,
                          .sequence_parallel = c.get<bool>("sequence_parallel"),
                          .communication_chunks = c.get<std::int64_t>("communication_chunks")};
    return {.trainer = mesh::of_one_batch(c, std::move(config), axes),
            .shares = mesh::Shares::columns,
            .axes = axes,
            .loss = axes.has_replicas() ? mesh::ReportedLoss::mean_of_ranks : mesh::ReportedLoss::of_rank,
            .graph = assay::workload::is_graph(c),
            .collectives = parallel::CollectiveSettings(c)};
  }
};

}  // namespace tensor_parallel

ASSAY_PLUGIN("org.assay.tensor_parallel", "1.0.0", assay::mesh::Workload<tensor_parallel::Tables>)
