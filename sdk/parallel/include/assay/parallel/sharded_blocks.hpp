// Parameters that are shared out among ranks, as ZeRO stages 2 and 3 have them: each rank keeps its part of every
// block, with the gradients and the optimizer's state of that part alone. A block is gathered for the time that it is
// at work, and its gradients are reduced to the parts when backward has made them.
//
//   forward of block i    the gathering of block i + 1 runs beside it
//   backward of block i   the gathering of block i - 1 runs beside it, and the reduction of block i + 1
//
// With `reshard` (ZeRO 3) a block is given up after its forward and gathered again for its backward, but for the last
// one, whose backward follows at once. Without it (ZeRO 2) it stays. What is gathered is the copy that products read,
// in the activations' format; resident parameters are gathered as the optimizer has them, once in a step.
//
// Where blocks and whole gradients lie while they are here is planned from the step, as its activations are
// (step_recording.hpp): messages() of a plan of their own. A gathering's place counts as taken from its start, and a
// reduction's until it has been waited for, so that no collective in flight shares memory with anything.
//
// Nothing here waits on the host: collectives are enqueued, and the compute stream waits for them.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/block_shards.hpp>
#include <assay/train/block_parameters.hpp>
#include <assay/train/buffer_plan.hpp>
#include <assay/train/gradient_exchange.hpp>
#include <cstddef>
#include <utility>
#include <vector>

namespace assay::parallel {

class ShardedBlocks final : public train::BlockParameters, public train::GradientExchange {
 public:
  // This rank of so many.
  ShardedBlocks(std::int64_t rank, std::int64_t ranks, bool reshard)
      : rank_(rank), ranks_(ranks), reshard_(reshard), messages_(train::UnboundMemory::messages) {}

  // ---- before the first step
  std::size_t message_bytes() const { return messages_.total_bytes(); }  // of gathered blocks and whole gradients
  void bind(void* messages);                                             // message_bytes()
  // nullptr: the step goes without communication. A rank then computes with its own part in the place of the others',
  // and takes its part of its own gradients for the average: as many operations, on numbers of the same size.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }

  // ---- train::BlockParameters
  void divide(train::ParameterSet& whole, train::ModelBlocks model, train::ParameterSet& kept) override;
  void plan(const std::function<void(compute::Backend&)>& step) override;
  void draw(compute::Backend& backend, std::uint64_t seed) const override;
  void begin_forward(compute::Backend& backend) override;
  void before_forward(compute::Backend& backend, std::size_t block) override;
  void before_backward(compute::Backend& backend, std::size_t block) override;
  void after_backward(compute::Backend& backend, std::size_t block) override;

  // ---- train::GradientExchange
  void begin_step() override {}
  train::GradientListener* listener() override { return nullptr; }
  void finish() override;
  // What comes last is the embedding and the resident parameters, whose reductions nothing of backward hides.
  const std::vector<train::ElementRange>& stretches() const override { return stretches_; }
  void finish_stretch(std::size_t index) override;

  // ---- what there is
  std::size_t count() const { return blocks_.size(); }  // the resident parameters, which are the last one, included
  const BlockShards& shards(std::size_t block) const { return blocks_[block].shards; }
  train::ElementRange kept(std::size_t block) const { return blocks_[block].kept; }  // of the arenas of this rank
  compute::Tensor part(std::size_t block) const;                                     // this rank's, as it is gathered
  std::int64_t padding_elements() const;                                             // of all blocks, over all ranks
  // Gathers one block as a step does, whichever is asked for, and waits: contiguous, as BlockShards has it. Any later
  // call, or step, may overwrite it.
  compute::Tensor gather(compute::Backend& backend, std::size_t block);
  compute::Tensor messages() const;  // all of their memory, as bytes

 private:
  using Id = train::BufferPlan::Id;
  struct Block {
    explicit Block(BlockShards layout) : shards(std::move(layout)) {}
    BlockShards shards;
    train::ElementRange kept;
    bool regathered = false;       // for backward
    Id forward = 0, backward = 0;  // where it is gathered; the same unless it is regathered
    Id gradients = 0;
    compute::Tensor here;  // where its parameters are now
    comm::Ticket gathering = 0, reduction = 0;
  };

  std::size_t resident() const { return blocks_.size() - 1; }
  std::size_t last() const { return blocks_.size() - 2; }  // of those that come and go
  bool is_recording() const { return memory_ == nullptr; }
  compute::DType gathered_type(std::size_t block) const;
  compute::Tensor gradient_part(std::size_t block) const { return kept_->gradients(blocks_[block].kept); }
  void start_gathering(compute::Backend& backend, std::size_t block, Id to);
  void finish_gathering(compute::Backend& backend, std::size_t block);
  void start_reduction(compute::Backend& backend, std::size_t block);
  void finish_reduction(compute::Backend& backend, std::size_t block);
  void place(std::size_t block, bool with_gradients);
  void repeat_part(compute::Backend& backend, std::size_t block, const compute::Tensor& place);

  std::int64_t rank_, ranks_;
  bool reshard_;
  train::ParameterSet* whole_ = nullptr;
  train::ParameterSet* kept_ = nullptr;
  std::vector<Block> blocks_;  // in the order of forward; behind them the resident parameters
  train::BufferPlan messages_;
  std::vector<train::ElementRange> stretches_;  // of what is kept
  Id drawing_ = 0;                              // the largest parameter, while parameters are drawn
  void* memory_ = nullptr;
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
