// Data-parallel training of a decoder in which optimizer state is on every rank, or shared out among them.
#pragma once
#include <assay/parallel/communication_metrics.hpp>
#include <assay/parallel/gather_memory.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/training_metrics.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/asked_decoder.hpp>
#include <optional>

#include "exact_weights.hpp"
#include "matrix_shares.hpp"
#include "settings.hpp"

namespace sharded_optimizer {

class Workload {
 public:
  static constexpr auto id = "sharded_optimizer";
  static constexpr auto summary = "data-parallel decoder training with optimizer state on every rank or shared out";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = sharded_optimizer::params;
  static constexpr auto presets = assay::models::model_presets;
  static constexpr auto gradient_wait_phase = assay::phase("gradient_wait");
  static constexpr auto parameter_wait_phase = assay::phase("parameter_wait");
  static constexpr auto phases = assay::table(assay::train::forward_phase, assay::train::backward_phase,
                                              gradient_wait_phase, assay::train::optimizer_phase, parameter_wait_phase);
  static constexpr auto loss_metric =
      assay::Metric::per_case("loss").help("cross-entropy of the last step, nats, mean over the ranks");
  static constexpr auto optimizer_state_bytes_metric =
      assay::Metric::per_case("optimizer_state_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("moments that a rank keeps; times the ranks it is the baseline's and shard_padding_bytes");
  static constexpr auto shard_padding_bytes_metric =
      assay::Metric::per_case("shard_padding_bytes")
          .unit("bytes")
          .lower_is_better()
          .help("state of elements that only make the parts equal, over all ranks");
  static constexpr auto buckets_metric = assay::Metric::per_case("buckets").help("number of buckets of gradients");
  static constexpr auto matrix_imbalance_metric =
      assay::Metric::per_case("matrix_imbalance")
          .lower_is_better()
          .help("of muon's matrices that are shared out: the most operations of a rank, over an equal share; 1: equal");
  static constexpr auto metrics =
      assay::table(assay::train::parameters_metric, loss_metric, optimizer_state_bytes_metric,
                   shard_padding_bytes_metric, assay::parallel::communication_bytes_metric,
                   assay::parallel::communication_ms_metric, buckets_metric, matrix_imbalance_metric);
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
  void begin_from_rank_0();  // all ranks, with its weights; after the trainer's start
  const std::vector<assay::train::ElementRange>& buckets() const { return ready_buckets_.buckets(); }
  assay::comm::Communicator& communicator() const { return steps_.communicator(); }
  // These enqueue; AnyLaunch is Launch or train::UnmarkedLaunch (step.hpp).
  template <class AnyLaunch>
  void enqueue_step(const AnyLaunch& launch);
  void start_reduction(std::size_t bucket);
  void clear_padding();
  template <class AnyLaunch>
  void wait_for_gradients(const AnyLaunch& launch);
  template <class AnyLaunch>
  void update_everything(const AnyLaunch& launch);
  template <class AnyLaunch>
  void update_and_broadcast(const AnyLaunch& launch);
  template <class AnyLaunch>
  void update_and_gather(const AnyLaunch& launch);
  template <class AnyLaunch>
  void update_matrices_and_broadcast(const AnyLaunch& launch);
  // What ranks send of these weights: as products read them, the copy where there is one.
  assay::compute::Tensor sent(const assay::train::ElementRange& range) const;
  // Each returns the ticket of what it has sent; `last`: there was nothing to send.
  assay::comm::Ticket send(const MatrixShares::Piece& piece);
  assay::comm::Ticket send_matrices(std::int32_t shape, assay::comm::Ticket last);
  // Behind the collective `last` of a step: the ticket to wait for, after which receive_exact_weights() is due.
  assay::comm::Ticket send_exact_weights(assay::comm::Ticket last);
  void receive_exact_weights();
  std::vector<assay::train::ElementRange> owned_by(std::int32_t rank) const;  // ascending
  std::vector<std::vector<assay::train::ElementRange>> owned_by_rank() const;
  void enqueue_without_communication();
  std::int64_t padding_bytes() const;

  // verification.cpp
  assay::Verified check_gradients(const Launch& launch);
  std::uint64_t hash_of_read_weights() const;

  assay::Host host_;
  Settings settings_;
  assay::verification::AskedDecoder asked_;
  assay::comm::CollectiveMemory registered_parameters_;  // where they are gathered from such memory
  assay::models::DecoderTrainer trainer_;
  assay::parallel::ReadyBuckets ready_buckets_;
  assay::train::ElementRange arena_;
  std::optional<MatrixShares> matrix_shares_;  // where the optimizer updates whole matrices, and ranks share them
  ExactWeights exact_weights_;
  assay::DeviceMemory exact_message_;
  assay::parallel::RankSteps steps_;
  std::vector<assay::comm::Ticket> reductions_;  // by bucket
};

}  // namespace sharded_optimizer
