// The update of ranks that share out the optimizer's state, or its work: each updates a part of the parameters and
// sends it to the others. Gradients meet in buckets beside backward, in place. Whole matrices (muon) have one owner
// each (matrix_shares.hpp). Ranks send weights as products read them, the copy where there is one, and what a step
// reads exactly beside it (exact_weights.hpp).
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/exact_weights.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/parallel/matrix_shares.hpp>
#include <assay/parallel/optimizer_shards.hpp>
#include <assay/train/step_marks.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::parallel {

class ShardedUpdate {
 public:
  struct Options {
    StateSharing sharing = StateSharing::zero1;
    bool shares_matrices = false;  // whole, among the ranks
    std::size_t bucket_bytes = 0, last_bucket_bytes = 0;
    std::int64_t bucket_multiple = 0;  // as BucketOptions has it
  };
  // Before the trainer's set-up: restricts its optimizer to what this rank owns. `exact`: parameters that a step reads
  // as the optimizer has them. The trainer must outlive it.
  ShardedUpdate(train::Trainer& trainer, std::int32_t rank, std::int32_t ranks, const Options& options,
                const std::vector<train::ParameterSet::Id>& exact);

  // ---- before the first step
  std::size_t message_bytes() const { return exact_weights_.message_bytes(); }  // of exact weights; 0: there are none
  void bind(void* message) { exact_weights_.bind(message); }
  void use(comm::Communicator& communicator) { communicator_ = &communicator; }
  void clear() const { exact_weights_.clear(trainer_.backend()); }  // after bind()
  // What set-up prepares: a step without communication.
  void enqueue_without_communication();

  // A step.
  void enqueue(const train::StepMarks& launch);

  // ---- what there is
  const std::vector<train::ElementRange>& buckets() const { return ready_buckets_.buckets(); }
  std::vector<train::ElementRange> owned_by(std::int32_t rank) const;  // ascending
  // Of zero1 without whole matrices, which alone gathers: what a rank has after each gathering of a step.
  std::vector<std::size_t> gathered_bytes() const;
  // True if a rank has the averages of only its own part.
  bool scatters() const { return options_.sharing == StateSharing::zero1; }
  const MatrixShares* matrix_shares() const { return matrix_shares_ ? &*matrix_shares_ : nullptr; }
  std::int64_t padding_bytes() const;  // of state, over all ranks
  // At least, of a step: weights and gradients that a rank reads and writes, and its update.
  std::uint64_t moved_bytes() const;

 private:
  comm::Communicator& communicator() const { return *communicator_; }
  std::vector<std::vector<train::ElementRange>> owned_by_rank() const;
  void start_reduction(std::size_t bucket);
  void clear_padding();
  void wait_for_gradients(const train::StepMarks& launch);
  void update_everything(const train::StepMarks& launch);
  void update_and_broadcast(const train::StepMarks& launch);
  void update_and_gather(const train::StepMarks& launch);
  void update_matrices_and_broadcast(const train::StepMarks& launch);
  // What ranks send of these weights: as products read them, the copy where there is one.
  compute::Tensor sent(const train::ElementRange& range) const;
  // Each returns the ticket of what it has sent; `last`: there was nothing to send.
  comm::Ticket send(const MatrixShares::Piece& piece);
  comm::Ticket send_matrices(std::int32_t shape, comm::Ticket last);
  // Behind the collective `last` of a step: the ticket to wait for, after which receive_exact_weights() is due.
  comm::Ticket send_exact_weights(comm::Ticket last);
  void receive_exact_weights();

  train::Trainer& trainer_;
  std::int32_t rank_, ranks_;
  Options options_;
  ReadyBuckets ready_buckets_;
  train::ElementRange arena_;
  std::optional<MatrixShares> matrix_shares_;  // where the optimizer updates whole matrices, and ranks share them
  ExactWeights exact_weights_;
  std::vector<comm::Ticket> reductions_;  // by bucket
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
