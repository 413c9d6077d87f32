// Training of a decoder whose parameters, gradients and optimizer state are shared out among the ranks.
#pragma once
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/gather_memory.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/parallel/sharded_blocks.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>

#include "settings.hpp"

namespace fsdp {

class Workload {
 public:
  static constexpr auto id = "fsdp";
  static constexpr auto summary = "decoder training with parameters, gradients and optimizer state shared out";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = fsdp::params;
  static constexpr auto presets = assay::models::model_presets;
  static constexpr auto phases = assay::train::rank_training_phases;
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the last step, nats, mean over the ranks");
  static constexpr auto gathered_bytes_metric =
      assay::Metric::per_case("gathered_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("of the memory in which blocks are gathered and whole gradients made, as planned");
  static constexpr auto shard_padding_bytes_metric =
      assay::Metric::per_case("shard_padding_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("optimizer state of elements that only make the parts equal, over all ranks");
  static constexpr auto metrics =
      assay::join(assay::table(assay::train::parameters_metric, loss_metric), assay::train::kept_bytes_metrics,
                  assay::table(gathered_bytes_metric, shard_padding_bytes_metric),
                  assay::parallel::communication_metrics, assay::table(assay::parallel::messages_metric));
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  assay::Account account(const Launch& launch);
  void restart(const Launch& launch);
  assay::Verified verify(const Launch& launch);
  assay::Work work() const;  // this rank's
  assay::Peak peak(const Launch& launch);
  void silence(bool silent);

 private:
  void report_bytes(const Launch& launch) const;
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch) {
    training_step(trainer_, launch, blocks_);
  }

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  assay::parallel::ShardedBlocks blocks_;
  assay::comm::CollectiveMemory registered_parameters_;  // what is kept of them, where it is gathered from such memory
  assay::models::DecoderTrainer trainer_;                // its parameters are what this rank keeps
  assay::comm::CollectiveMemory messages_;               // gathered blocks and whole gradients
  assay::parallel::RankSteps steps_;
};

}  // namespace fsdp
