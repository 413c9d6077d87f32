// The sharded_optimizer workload: data-parallel training of a decoder in which optimizer state is on every rank, or
// shared out among them.
#include <assay/mesh/workload.hpp>

namespace sharded_optimizer {

using assay::Metric;
using assay::Param;
using assay::parallel::StateSharing;
namespace mesh = assay::mesh;
namespace parallel = assay::parallel;
namespace train = assay::train;

struct Tables {
  static constexpr auto id = "sharded_optimizer";
  static constexpr auto summary = "data-parallel decoder training with optimizer state on every rank or shared out";
  static constexpr auto params = assay::join(
      assay::table(
          Param::choice("variant", StateSharing::zero1, parallel::state_sharings)
              .help("who keeps optimizer state: baseline: every rank all of it; broadcast: each rank a part of "
                    "the parameters, which it sends to the others; zero1: each rank a part of every bucket")),
      mesh::decoder_params(assay::models::model_params, parallel::rank_execution_params,
                           assay::train::optimizer_params),
      parallel::product_params, parallel::gather_params, parallel::communication_params);
  static constexpr auto phases =
      assay::table(train::forward_phase, train::backward_phase, assay::phase("gradient_wait"), train::optimizer_phase,
                   train::parameter_wait_phase);
  static constexpr auto loss_metric =
      Metric::per_case("loss").help("cross-entropy of the last step, nats, mean over the ranks");
  static constexpr auto optimizer_state_bytes_metric =
      Metric::per_case("optimizer_state_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("moments that a rank keeps; times the ranks it is the baseline's and shard_padding_bytes");
  static constexpr auto shard_padding_bytes_metric =
      Metric::per_case("shard_padding_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("state of elements that only make the parts equal, over all ranks");
  static constexpr auto buckets_metric = Metric::per_case("buckets").help("number of buckets of gradients");
  static constexpr auto matrix_imbalance_metric =
      Metric::per_case("matrix_imbalance")
          .lower_is_better()
          .help("of muon's matrices that are shared out: the most operations of a rank, over an equal share; 1: equal");
  static constexpr auto metrics =
      assay::table(train::parameters_metric, loss_metric, optimizer_state_bytes_metric, shard_padding_bytes_metric,
                   parallel::communication_bytes_metric, parallel::communication_ms_metric, buckets_metric,
                   matrix_imbalance_metric, parallel::gathers_taken_metric);

  static mesh::Strategy strategy(const assay::Case& c);
  static void report_set_up(const auto& launch, const mesh::SetUp& found) {
    launch.report(optimizer_state_bytes_metric, found.trainer.optimizer().moment_bytes());
    launch.report(shard_padding_bytes_metric, found.update->padding_bytes());
    launch.report(buckets_metric, found.update->buckets().size());
    launch.report(parallel::gathers_taken_metric, *found.strategy.gathers);
    if (found.update->matrix_shares())
      launch.report(matrix_imbalance_metric, found.update->matrix_shares()->imbalance());
  }
};

mesh::Strategy Tables::strategy(const assay::Case& c) {
  const parallel::WithGathers<parallel::CommunicationSettings> communication(c);
  assay::models::DecoderTrainerConfig trainer = mesh::decoder_config(c, train::WholeMatrixOptimizers::served);
  parallel::ShardedUpdate::Options update{.sharing = c.choice("variant", parallel::state_sharings),
                                          .bucket_bytes = communication.bucket_bytes,
                                          .last_bucket_bytes = communication.last_bucket_bytes};
  update.shares_matrices = update.sharing != StateSharing::baseline && trainer.optimizer.name == "muon";
  if (update.shares_matrices && communication.gathers == parallel::Gathers::copy_engines)
    throw assay::Error(
        ASSAY_UNSUPPORTED,
        "gathers = \"copy_engines\" makes gatherings, and muon's matrices are broadcast by their owners; "
        "expected another value of gathers, or optimizer = \"adamw\"");
  if (!communication.gathers && (update.sharing != StateSharing::zero1 || update.shares_matrices))
    throw assay::Error(ASSAY_UNSUPPORTED,
                       "gathers = \"measured\" needs variant = \"zero1\" without muon, since only that gathers; set "
                       "these, or name a kind");
  // Buckets of whole matrices end where groups of parameters do.
  if (!update.shares_matrices)
    trainer.arena_multiple = update.bucket_multiple = parallel::arena_multiple(update.sharing, c.rank_count());
  return {.trainer = trainer,
          .update = update,
          .begins_from_rank_0 = true,
          .loss = mesh::ReportedLoss::mean_of_ranks,
          .memory_moments = true,
          .graph = assay::workload::is_graph(c),
          .left_multiprocessors = c.get<std::int32_t>("leave_multiprocessors"),
          .collectives = communication,
          .gathers = communication.gathers};
}

}  // namespace sharded_optimizer

ASSAY_PLUGIN("org.assay.sharded_optimizer", "1.0.0", assay::mesh::Workload<sharded_optimizer::Tables>)
