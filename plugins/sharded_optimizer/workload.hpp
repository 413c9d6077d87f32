// Data-parallel training of a decoder in which optimizer state is on every rank, or shared out among them.
#pragma once
#include <assay/comm/silent.hpp>
#include <assay/train/gradient_buckets.hpp>
#include <memory>

#include "settings.hpp"

namespace sharded_optimizer {

class Workload {
 public:
  static constexpr auto id = "sharded_optimizer";
  static constexpr auto summary = "data-parallel decoder training with optimizer state on every rank or shared out";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = sharded_optimizer::params;
  static constexpr auto presets = assay::train::model_presets;
  enum Phase { forward_phase, backward_phase, gradient_wait_phase, optimizer_phase, parameter_wait_phase };
  static constexpr auto phases = assay::names("forward", "backward", "gradient_wait", "optimizer", "parameter_wait");
  enum Metric {
    parameters_metric,
    loss_metric,
    optimizer_state_bytes_metric,
    shard_padding_bytes_metric,
    communication_bytes_metric,
    communication_ms_metric,
    buckets_metric
  };
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("parameters", nullptr, ASSAY_NEITHER_IS_BETTER, "number of trainable parameters"),
      assay::Metric::per_case("loss", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "cross-entropy of the last step, nats, mean over the ranks"),
      assay::Metric::per_case(
          "optimizer_state_bytes", "bytes", ASSAY_LOWER_IS_BETTER,
          "moments that a rank keeps; times the ranks it is the baseline's and shard_padding_bytes"),
      assay::Metric::per_case("shard_padding_bytes", "bytes", ASSAY_LOWER_IS_BETTER,
                              "state of elements that only make the parts equal, over all ranks"),
      assay::Metric::per_case("communication_bytes", "bytes", ASSAY_LOWER_IS_BETTER,
                              "of a rank in a step: the larger of what each collective sends and receives, summed"),
      assay::Metric::per_case("communication_ms", "ms", ASSAY_LOWER_IS_BETTER,
                              "that collectives were under way in a step, warm-up included; hidden or not"),
      assay::Metric::per_case("buckets", nullptr, ASSAY_NEITHER_IS_BETTER, "number of buckets of gradients"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch);
  void run(const assay::Launch& launch);
  void finish(const assay::Launch& launch);
  assay::Verified verify(const assay::Launch& launch);
  assay::Work work() const;  // this rank's
  assay::Peak peak(const assay::Launch& launch);
  void silence(bool silent) { communicator_.silence(silent); }

 private:
  const std::vector<assay::train::ElementRange>& buckets() const { return ready_buckets_.buckets(); }
  void step(const assay::Launch& launch);
  void average_gradients();  // forward and backward with the buckets' reductions, which are then waited for
  void start_reduction(std::size_t bucket);
  void clear_padding();
  void wait_for_gradients(const assay::Launch& launch);
  void update_everything(const assay::Launch& launch);
  void update_and_broadcast(const assay::Launch& launch);
  void update_and_gather(const assay::Launch& launch);
  // The bf16 copy of what other ranks have updated; the optimizer has written that of `own` itself.
  void refresh_copy_around(const assay::train::ElementRange& whole, const assay::train::ElementRange& own);
  void enqueue_without_communication();
  std::int64_t padding_bytes() const;

  // verification.cpp
  assay::Verified check_gradients();
  std::string check_updates(const assay::Launch& launch);

  assay::Host host_;
  Settings settings_;
  assay::train::DecoderTrainer trainer_;
  assay::train::ReadyBuckets ready_buckets_;
  assay::train::ElementRange arena_;
  assay::comm::SilenceableCommunicator communicator_;
  std::vector<assay::comm::Ticket> reductions_, gathers_;  // by bucket
  std::uint64_t steps_ = 0;
};

}  // namespace sharded_optimizer
