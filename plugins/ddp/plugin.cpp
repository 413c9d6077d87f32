// The ddp workload: several ranks train one decoder, each on its part of the batch, and average their gradients.
#include <assay/mesh/workload.hpp>
#include <string>

namespace ddp {

using assay::Metric;
using assay::Param;
namespace parallel = assay::parallel;

struct Tables {
  static constexpr auto id = "ddp";
  static constexpr auto summary = "data-parallel training of a decoder: gradients averaged over the ranks";
  static constexpr auto params = assay::join(
      assay::table(Param::choice("strategy", parallel::AverageMode::overlap_bucketed, parallel::average_modes)
                       .help("when and in what pieces gradients are averaged. naive: one blocking "
                             "all-reduce for each parameter after backward; flat: one for all of them "
                             "after backward; overlap_individual: one for each parameter, started as "
                             "soon as backward has made it; overlap_bucketed: the same by buckets")),
      assay::mesh::decoder_params(assay::models::model_params, parallel::rank_execution_params,
                                  assay::train::optimizer_params),
      parallel::product_params, parallel::measured_communication_params);
  static constexpr auto loss_metric =
      Metric::per_case("loss").help("cross-entropy of the last step on this rank's part of the batch, nats");
  static constexpr auto collectives_metric =
      Metric::per_case("collectives").help("all-reduces in a step: parameters, buckets, or 1");
  static constexpr auto bucket_mib_metric =
      Metric::per_case("bucket_mib")
          .unit("MiB")
          .help("overlap_bucketed: size of a bucket, as asked for or as measured");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), parallel::communication_metrics,
                  assay::table(collectives_metric, parallel::small_collectives_metric,
                               parallel::small_communication_bytes_metric, bucket_mib_metric));

  static assay::mesh::Strategy strategy(const assay::Case& c);
  static void report_set_up(const auto& launch, const assay::mesh::SetUp& found) {
    if (found.strategy.gradients->when == parallel::AverageMode::overlap_bucketed)
      launch.report(bucket_mib_metric, static_cast<double>(found.bucket_bytes) * 0x1p-20);
    launch.report(collectives_metric, found.gradients->collectives_in_step());
    parallel::report_small_messages(launch, found.gradients->sizes_bytes());
  }
};

assay::mesh::Strategy Tables::strategy(const assay::Case& c) {
  const parallel::CommunicationSettings communication(c);
  const assay::mesh::GradientMeeting gradients{.when = c.choice("strategy", parallel::average_modes),
                                               .bucket_bytes = communication.bucket_bytes,
                                               .last_bucket_bytes = communication.last_bucket_bytes};
  assay::mesh::Strategy strategy{.trainer = assay::mesh::decoder_config(c, assay::train::WholeMatrixOptimizers::served),
                                 .gradients = gradients,
                                 .begins_from_rank_0 = true,
                                 .graph = assay::workload::is_graph(c),
                                 .left_multiprocessors = c.get<std::int32_t>("leave_multiprocessors"),
                                 .collectives = communication};
  const auto refuse = [](const char* setting, const char* why) {
    throw assay::Error(ASSAY_INVALID_ARGUMENT, std::string(setting) + " is of strategies that " + why +
                                                   ", and strategy is another; leave it out");
  };
  const bool buckets = gradients.when == parallel::AverageMode::overlap_bucketed;
  if (strategy.left_multiprocessors > 0 && !buckets && gradients.when != parallel::AverageMode::overlap_individual)
    refuse("leave_multiprocessors", "average beside backward, overlap_individual and overlap_bucketed");
  if (c.get<double>("last_bucket_mb") > 0 && !buckets) refuse("last_bucket_mb", "have buckets, overlap_bucketed");
  return strategy;
}

}  // namespace ddp

ASSAY_PLUGIN("org.assay.ddp", "1.0.0", assay::mesh::Workload<ddp::Tables>)
