// The context_parallel workload: training of a decoder whose sequences are shared out over the ranks.
#include <assay/mesh/workload.hpp>
#include <string>

namespace context_parallel {

namespace mesh = assay::mesh;
namespace models = assay::models;
namespace parallel = assay::parallel;

// The backward of 16-bit attention on a GPU serves multiples of 128 keys where there are more keys than queries.
void require_chunks_for_cudnn(const assay::Case& c, const models::DecoderConfig& model) {
  constexpr std::int64_t keys = 128;
  const bool is_wide = model.precision.activation == assay::compute::DType::f32;
  if (!model.shares_context() || is_wide || c.device_kind() != "cuda" || model.chunk_length() % keys == 0) return;
  const std::int64_t multiple = 2 * keys * model.context.ranks;
  throw assay::Error(
      ASSAY_UNSUPPORTED,
      "context_length " + std::to_string(model.context_length) + " makes chunks of " +
          std::to_string(model.chunk_length()) +
          " tokens, and 16-bit attention on a GPU serves chunks of multiples of 128; expected a multiple of " +
          std::to_string(multiple) + ", or precision = \"fp32\"");
}

struct Tables {
  static constexpr auto id = "context_parallel";
  static constexpr auto summary = "decoder training on long sequences, whose tokens are shared out over the ranks";
  static constexpr auto params =
      assay::join(mesh::replica_params,
                  mesh::decoder_params(models::shared_model_params, parallel::rank_execution_params,
                                       assay::train::elementwise_optimizer_params),
                  parallel::bucket_params, parallel::collective_params);
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the last step, nats, mean over the tokens of all ranks");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), parallel::communication_metrics,
                  assay::table(parallel::messages_metric), parallel::replica_metrics);

  static mesh::Strategy strategy(const assay::Case& c) {
    models::DecoderTrainerConfig config = models::decoder_trainer_config(c);
    const mesh::Axes axes = mesh::axes_of(c);
    config.model.context = {.rank = axes.place, .ranks = axes.ranks};
    config = mesh::of_one_batch(c, std::move(config), axes);
    config.is_term = true;
    require_chunks_for_cudnn(c, config.model);
    return {.trainer = std::move(config),
            .shares = mesh::Shares::tokens,
            .axes = axes,
            .gradients = {{.reduction = assay::comm::Reduction::sum,
                           .bucket_bytes = static_cast<std::size_t>(c.get<double>("bucket_mb") * 0x1p20)}},
            .loss = mesh::ReportedLoss::sum_of_ranks,
            .graph = assay::workload::is_graph(c),
            .collectives = parallel::CollectiveSettings(c)};
  }
};

}  // namespace context_parallel

ASSAY_PLUGIN("org.assay.context_parallel", "1.0.0", assay::mesh::Workload<context_parallel::Tables>)
