// Parameters shared out among ranks, as in ZeRO stages 2 and 3: each rank keeps its part of every block, with the
// gradients and the optimizer's state of that part. A block is gathered while it works, and its gradients are reduced
// to the parts when backward has made them.
//
//   forward of block i    the gathering of block i + p runs beside it
//   backward of block i   the gathering of block i - p runs beside it, and the reduction of block i + 1
//
// where p is prefetch_blocks: with 2 a gathering may take as long as two blocks' work, for the memory of one block
// more. With `reshard` (ZeRO 3) a block is given up after its forward and gathered again for its backward. The last
// block stays, as its backward follows at once. Without `reshard` (ZeRO 2) every block stays. The copy that products
// read, in the activations' format, is gathered; resident parameters are gathered as the optimizer has them, once in a
// step. A block that works at both ends (ModelBlocks::ends_with_first) is gathered for both, or once if blocks stay.
// Its gradients are reduced once, when both ends have made them. In a step of several micro-batches each gathers the
// blocks again. Its gradients may be reduced with it, and added to those of earlier ones in the rank's part: memory for
// one block's part at a time, and the traffic of each. Or the whole gradients of all blocks stay here and add up, and
// are reduced with the last micro-batch: their memory, and the traffic of one.
//
// Gradients may travel and be averaged in another format than they are made in (`reduced_in`): whole ones are converted
// before their reduction, and the rank's part of the averages behind it.
//
// A plan made from the step, like its activations' (step_recording.hpp), places blocks and whole gradients while they
// are here: messages() of a separate plan. A gathering's place counts as taken from its start, and a reduction's until
// it has been waited for, so no collective in flight shares memory with anything.
//
// Nothing here waits on the host: collectives are enqueued, and the compute stream waits for them.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/block_shards.hpp>
#include <assay/train/block_parameters.hpp>
#include <assay/train/buffer_plan.hpp>
#include <assay/train/gradient_exchange.hpp>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace assay::parallel {

class ShardedBlocks final : public train::BlockParameters, public train::GradientExchange {
 public:
  struct Options {
    bool reshard = true;
    std::int64_t prefetch_blocks = 1;               // that are gathered ahead of the one at work
    std::int64_t micro_batches = 1;                 // of a step
    bool reduce_every_micro_batch = true;           // false: with the last one
    std::optional<compute::DType> reduced_in = {};  // the format of reductions; empty: the gradients'
  };
  // This rank of so many.
  ShardedBlocks(std::int64_t rank, std::int64_t ranks, const Options& options)
      : rank_(rank), ranks_(ranks), options_(options), messages_(train::UnboundMemory::messages) {}

  // ---- before the first step
  std::size_t message_bytes() const { return messages_.total_bytes(); }  // of gathered blocks and whole gradients
  void bind(void* messages);                                             // message_bytes()
  // nullptr: the step runs without communication. A rank then computes with its part in place of the others', and takes
  // its part of its gradients as the average: as many operations, on numbers of the same size.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }

  // ---- train::BlockParameters
  void divide(train::ParameterSet& whole, train::ModelBlocks model, train::ParameterSet& kept) override;
  void plan(const std::function<void(compute::Backend&)>& step) override;
  void draw(compute::Backend& backend, std::uint64_t seed) const override;
  compute::Tensor summed_gradients() const override;
  void begin_forward(compute::Backend& backend, std::int64_t micro_batch) override;
  void before_forward(compute::Backend& backend, std::size_t visit) override;
  void before_backward(compute::Backend& backend, std::size_t visit) override;
  void after_backward(compute::Backend& backend, std::size_t visit) override;

  // ---- train::GradientExchange
  void begin_step() override {}
  train::GradientListener* listener() override { return nullptr; }
  void finish() override;
  bool announce_to(train::GradientListener& listener) override {
    reduction_listener_ = &listener;
    return true;
  }
  // What comes last is the embedding and the resident parameters, whose reductions nothing of backward hides.
  const std::vector<train::ElementRange>& stretches() const override { return stretches_; }
  void finish_stretch(std::size_t index) override;

  // ---- what there is
  std::int64_t rank() const { return rank_; }
  std::int64_t ranks() const { return ranks_; }
  std::size_t count() const { return blocks_.size(); }  // the resident parameters, which are the last one, included
  const BlockShards& shards(std::size_t block) const { return blocks_[block].shards; }
  train::ElementRange kept(std::size_t block) const { return blocks_[block].kept; }  // of the arenas of this rank
  compute::Tensor part(std::size_t block) const;                                     // this rank's, as it is gathered
  std::int64_t padding_elements() const;                                             // of all blocks, over all ranks
  compute::DType reduction_type() const { return options_.reduced_in.value_or(whole_->policy().gradient); }
  // What a rank has after each gathering of a forward, in their order.
  std::vector<std::size_t> gathered_bytes() const;
  // Gathers one block as a step does, whichever is asked for, and waits: contiguous, as BlockShards has it. Any later
  // call, or step, may overwrite it.
  compute::Tensor gather(compute::Backend& backend, std::size_t block);
  compute::Tensor messages() const;  // all of their memory, as bytes

 private:
  using Id = train::BufferPlan::Id;
  struct Block {
    explicit Block(BlockShards layout) : shards(std::move(layout)) {}
    BlockShards shards;
    train::ParameterSet::Id id = 0;  // of the part that is kept
    train::ElementRange kept;
    Id gathered = 0;   // where it is in backward
    Id gradients = 0;  // the buffer of the whole ones, and where in it they begin
    std::int64_t first_gradient = 0;
    Id received = 0;           // what a reduction brings, before it is added; where micro-batches reduce one by one
    Id sent = 0, arrived = 0;  // of a reduction in another format: whole gradients, and the part of the averages
    comm::Ticket reduction = 0;
  };
  // A gathering that has been started: where its parameters are, or will be.
  struct Gathering {
    compute::Tensor here = {};
    comm::Ticket ticket = 0;
  };
  // A time at which a block is at work, in the order of forward.
  struct Visit {
    std::size_t block = 0;
    Id forward = 0, backward = 0;  // where it is gathered; the same unless it is regathered
    bool gathered = true;          // for forward; not where an earlier visit's stays
    bool regathered = false;       // for backward
    Gathering gathering = {};      // of this micro-batch, the latest
  };

  std::size_t resident() const { return blocks_.size() - 1; }
  std::size_t last() const { return visits_.size() - 1; }
  std::size_t ahead() const { return static_cast<std::size_t>(options_.prefetch_blocks); }
  bool is_first_visit(std::size_t visit) const { return visits_[visit].block == visit; }
  bool accumulates() const { return options_.micro_batches > 1; }
  bool sums_whole_gradients() const { return accumulates() && !options_.reduce_every_micro_batch; }
  bool is_last_micro_batch() const { return micro_batch_ + 1 == options_.micro_batches; }
  // What a reduction brings is added to what earlier micro-batches have left.
  bool adds_reduced() const { return accumulates() && options_.reduce_every_micro_batch && micro_batch_ > 0; }
  bool converts() const { return options_.reduced_in && *options_.reduced_in != whole_->policy().gradient; }
  bool is_recording() const { return memory_ == nullptr; }
  compute::DType gathered_type(std::size_t block) const;
  compute::Tensor gradient_part(std::size_t block) const { return kept_->gradients(blocks_[block].kept); }
  compute::Tensor whole_gradients(std::size_t block) const;
  // What a reduction sends, and where it leaves this rank's part.
  compute::Tensor sent_gradients(std::size_t block) const {
    return converts() ? messages_[blocks_[block].sent] : whole_gradients(block);
  }
  compute::Tensor arrived_part(std::size_t block) const {
    return converts() ? messages_[blocks_[block].arrived] : reduced_part(block);
  }
  // This rank's part of the averages, in the gradients' format.
  compute::Tensor reduced_part(std::size_t block) const {
    return adds_reduced() ? messages_[blocks_[block].received] : gradient_part(block);
  }
  void plan_visits(const train::ModelBlocks& model);
  void plan_gradients(const train::ParameterSet& whole);
  Gathering start_gathering(compute::Backend& backend, std::size_t block, Id to);
  void finish_gathering(compute::Backend& backend, const Gathering& gathering);
  void start_forward(compute::Backend& backend, std::size_t visit);  // its gathering, where it has one
  void start_backward(compute::Backend& backend, std::size_t visit);
  void start_reduction(compute::Backend& backend, std::size_t block);
  void fill_gaps(compute::Backend& backend, std::size_t block) const;
  void finish_reductions(compute::Backend& backend);  // of all that have been started
  void place(std::size_t block, const Gathering& gathering, bool with_gradients);
  compute::Tensor repeat_part(compute::Backend& backend, std::size_t block, const compute::Tensor& place);

  std::int64_t rank_, ranks_;
  Options options_;
  train::ParameterSet* whole_ = nullptr;
  train::ParameterSet* kept_ = nullptr;
  train::GradientListener* reduction_listener_ = nullptr;  // of the last micro-batch
  std::vector<Block> blocks_;  // in the order of forward; behind them the resident parameters
  std::vector<Visit> visits_;
  Gathering resident_;  // of the resident parameters
  train::BufferPlan messages_;
  std::vector<train::ElementRange> stretches_;  // of what is kept
  std::vector<std::size_t> reducing_;           // blocks whose reductions have not been waited for
  std::int64_t micro_batch_ = 0;
  compute::Backend* backend_ = nullptr;  // of the step's first micro-batch: finish() is handed none
  Id drawing_ = 0;                       // the largest parameter, while parameters are drawn
  void* memory_ = nullptr;
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
