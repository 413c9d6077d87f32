// A model whose parameters come and go by blocks: of an idle block only a part is here, and its gradients leave when
// backward has made them. The model states where in its forward and backward a block begins and ends. The
// implementation of BlockParameters (parallel::ShardedBlocks) brings the parameters in, takes the gradients away, and
// gives each parameter its place (ParameterSet::place).
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::train {

struct ParameterBlock {
  std::string name;
  std::vector<ParameterSet::Id> parameters;  // ascending, whole groups
  bool read_in_backward = true;
};

struct ModelBlocks {
  std::vector<ParameterBlock> blocks;  // in the order of forward; products read them: ParameterSet::compute
  ParameterBlock resident;             // there all through the step, as the optimizer has them: ParameterSet::value
  // The first block is at work a second time, behind the last one: an embedding whose weights are the head's. Its
  // gradients are the sum of both times.
  bool ends_with_first = false;
};

class BlockParameters {
 public:
  BlockParameters() = default;
  BlockParameters(const BlockParameters&) = delete;
  BlockParameters& operator=(const BlockParameters&) = delete;
  virtual ~BlockParameters() = default;

  // To be called once, before the model plans its step. `whole`: all parameters of the model, complete; their places
  // are this object's affair from now on. `kept`: still without parameters; gets those that the optimizer updates here.
  // Both must outlive this object.
  virtual void divide(ParameterSet& whole, ModelBlocks blocks, ParameterSet& kept) = 0;
  // Plans the memory in which blocks are while they are here. `step` enqueues the model's forward and backward, which
  // call the functions below.
  virtual void plan(const std::function<void(compute::Backend&)>& step) = 0;
  // Draws the kept parts from the distributions of their parameters; enqueues.
  virtual void draw(compute::Backend& backend, std::uint64_t seed) const = 0;

  // The place of the gradients of all blocks from the first micro-batch of a step to the last one; the operations then
  // add to them. Empty if each micro-batch writes them, because they leave with it.
  virtual compute::Tensor summed_gradients() const = 0;

  // Each enqueues, also on a backend that records a plan, for one micro-batch, the last one. Visits are counted in the
  // order of forward, from the first to the last block, and in backward in reverse; of the first block again if
  // ModelBlocks::ends_with_first is set.
  virtual void begin_forward(compute::Backend& backend, std::int64_t micro_batch) = 0;
  // The block's parameters are read from here on, and, of the last visit, its gradients may be written.
  virtual void before_forward(compute::Backend& backend, std::size_t visit) = 0;
  // Its gradients are written from here on: those of a block that was visited later already are added to.
  virtual void before_backward(compute::Backend& backend, std::size_t visit) = 0;
  // Its gradients are enqueued, and its parameters are read no more.
  virtual void after_backward(compute::Backend& backend, std::size_t visit) = 0;
};

}  // namespace assay::train
