// The workload of a strategy: its tables, and what it reports. A plugin has a class with the tables and
//
//   static assay::mesh::Strategy strategy(const assay::Case& c);  // throws assay::Error
//
// and is ASSAY_PLUGIN("org.example.name", "1.0.0", assay::mesh::Workload<Tables>). Its table of metrics has
// `parameters` and `loss`; kept_bytes_metrics, communication_metrics and `messages` are reported where it has their
// rows. Its phases are those of rank_training_phases, or another table in the order of train::RankPhases. The class
// reports its other metrics in
//
//   static void report_set_up(const auto& launch, const assay::mesh::SetUp& found);
#pragma once
#include <assay/mesh/decoder_ranks.hpp>
#include <assay/parallel/communication_metrics.hpp>
#include <assay/train/training_metrics.hpp>
#include <string>
#include <string_view>

namespace assay::mesh {

// What a strategy may report of its set-up.
struct SetUp {
  const Strategy& strategy;
  const models::DecoderTrainer& trainer;
  const parallel::ShardedBlocks* blocks;       // of Shares::blocks
  const parallel::GradientAverage* gradients;  // where gradients meet
  const parallel::ShardedUpdate* update;       // where ranks update parts
  std::size_t bucket_bytes;
};

template <class Tables>
consteval bool has_metric(std::string_view name) {
  for (const auto& metric : Tables::metrics)
    if (metric.row.name == name) return true;
  return false;
}

template <class Tables>
consteval bool has_replicas() {
  for (const auto& param : Tables::params)
    if (param.row.name == std::string_view("replicas")) return true;
  return false;
}

template <class Tables>
class Workload : public DecoderRanks {
 public:
  static constexpr auto id = Tables::id;
  static constexpr auto summary = Tables::summary;
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = Tables::params;
  static constexpr auto presets = models::model_presets;
  static constexpr auto phases = [] {
    if constexpr (requires { Tables::phases; })
      return Tables::phases;
    else
      return train::rank_training_phases;
  }();
  static constexpr auto metrics = Tables::metrics;
  using Launch = LaunchOf<Workload>;

  explicit Workload(const Case& c) : DecoderRanks(c, id, Tables::strategy(c), asked_replicas(c)) {}

  void setup(const Launch& launch) {
    launch.report(train::parameters_metric, trainer().whole_parameter_count());
    if constexpr (has_metric<Tables>("parameter_bytes")) train::report_kept_bytes<Workload>(launch, trainer());
    set_up(launch);
    const SetUp found{strategy(), trainer(), blocks(), gradients(), update(), bucket_bytes()};
    if constexpr (requires { Tables::report_set_up(launch, found); }) Tables::report_set_up(launch, found);
  }

  void finish(const Launch& launch) {
    note_memory("after_step");
    launch.report(Tables::loss_metric, reported_loss(std::string(id) + ".loss"));
    const auto step = steps().take_measured();
    if (!step) return;
    if constexpr (has_metric<Tables>("exposed_ms")) {
      report_communication(launch, *step);
    } else {
      launch.report(parallel::communication_bytes_metric, step->bytes);
      if (step->times) launch.report(parallel::communication_ms_metric, step->times->busy_ms);
    }
    if constexpr (has_metric<Tables>("messages")) launch.report(parallel::messages_metric, step->messages);
    if constexpr (has_metric<Tables>("replica_messages")) {
      if (!strategy().axes.has_replicas()) return;
      launch.report(parallel::replica_communication_bytes_metric, step->replica_bytes);
      launch.report(parallel::replica_messages_metric, step->replica_messages);
    }
  }

 private:
  static std::int64_t asked_replicas(const Case& c) {
    if constexpr (has_replicas<Tables>())
      return c.get<std::int64_t>("replicas");
    else
      return 0;
  }
};

}  // namespace assay::mesh
