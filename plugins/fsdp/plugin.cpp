// The fsdp workload: training of a decoder whose parameters, gradients and optimizer state are shared out among the
// ranks by blocks.
#include <assay/mesh/workload.hpp>

namespace fsdp {

using assay::Metric;
using assay::Param;
using assay::compute::DType;
namespace parallel = assay::parallel;

inline constexpr auto reduce_dtypes =
    assay::choices<std::optional<DType>>({{"gradients", std::nullopt}, {"fp32", DType::f32}, {"bf16", DType::bf16}});

struct Tables {
  static constexpr auto id = "fsdp";
  static constexpr auto summary = "decoder training with parameters, gradients and optimizer state shared out";
  static constexpr auto params = assay::join(
      assay::table(Param::boolean("reshard", true)
                       .help("true: a block's parameters are given up after its forward and gathered again for its "
                             "backward (ZeRO 3); false: they stay until then (ZeRO 2)"),
                   Param::integer("prefetch_blocks", 1)
                       .at_least(1)
                       .at_most(2)
                       .help("how many blocks ahead of the one at work gathering goes on, in forward and backward; "
                             "each holds the memory of one more gathered block"),
                   Param::choice("reduce_dtype", std::nullopt, reduce_dtypes)
                       .help("format in which gradients travel and are averaged. gradients: theirs; fp32, bf16: "
                             "converted before a reduction and back behind it"),
                   Param::boolean("sync_every_micro_batch", true)
                       .help("of accumulation_steps: true: each micro-batch's gradients are reduced to the ranks' "
                             "parts, and added up there; false: whole gradients are kept and added up, and reduced "
                             "with the last one")),
      assay::mesh::replica_params,
      assay::mesh::decoder_params(assay::models::model_params,
                                  parallel::rank_execution_params_from<assay::workload::Execution::graph>(),
                                  assay::train::elementwise_optimizer_params),
      parallel::product_params, parallel::gather_params, parallel::collective_params);
  static constexpr auto loss_metric =
      Metric::per_case("loss").help("cross-entropy of the last step, nats, mean over the ranks");
  static constexpr auto gathered_bytes_metric =
      Metric::per_case("gathered_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("of the memory in which blocks are gathered and whole gradients made, as planned");
  static constexpr auto shard_padding_bytes_metric =
      Metric::per_case("shard_padding_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("optimizer state of elements that only make the parts equal, over all ranks");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::train::kept_bytes_metrics,
                  assay::table(gathered_bytes_metric, shard_padding_bytes_metric), parallel::communication_metrics,
                  assay::table(parallel::messages_metric, parallel::gathers_taken_metric), parallel::replica_metrics);

  static assay::mesh::Strategy strategy(const assay::Case& c);
  static void report_set_up(const auto& launch, const assay::mesh::SetUp& found) {
    const auto state = static_cast<std::int64_t>(found.trainer.optimizer().moment_bytes());
    launch.report(parallel::gathers_taken_metric, *found.strategy.gathers);
    launch.report(gathered_bytes_metric, found.blocks->message_bytes());
    launch.report(shard_padding_bytes_metric,
                  found.blocks->padding_elements() * (state / found.trainer.parameters().arena_elements()));
  }
};

assay::mesh::Strategy Tables::strategy(const assay::Case& c) {
  const parallel::WithGathers<parallel::CollectiveSettings> collectives(c);
  assay::mesh::Strategy strategy{.trainer = assay::mesh::decoder_config(c),
                                 .shares = assay::mesh::Shares::blocks,
                                 .axes = assay::mesh::axes_of(c),
                                 .blocks = {.reshard = c.get<bool>("reshard"),
                                            .prefetch_blocks = c.get<std::int64_t>("prefetch_blocks"),
                                            .micro_batches = c.get<std::int64_t>("accumulation_steps"),
                                            .reduce_every_micro_batch = c.get<bool>("sync_every_micro_batch"),
                                            .reduced_in = c.choice("reduce_dtype", reduce_dtypes)},
                                 .loss = assay::mesh::ReportedLoss::mean_of_ranks,
                                 .graph = assay::workload::is_graph(c),
                                 .left_multiprocessors = c.get<std::int32_t>("leave_multiprocessors"),
                                 .collectives = collectives,
                                 .gathers = collectives.gathers};
  if (!strategy.blocks.reduce_every_micro_batch && strategy.blocks.micro_batches == 1)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "sync_every_micro_batch = false is of steps of several micro-batches; expected "
                       "accumulation_steps of at least 2, or leave it out");
  return strategy;
}

}  // namespace fsdp

ASSAY_PLUGIN("org.assay.fsdp", "1.0.0", assay::mesh::Workload<fsdp::Tables>)
