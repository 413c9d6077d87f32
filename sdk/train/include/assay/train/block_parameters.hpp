// A model whose parameters come and go by blocks: of a block that is not at work only a part is here, and its gradients
// leave when backward has made them. The model says where in its forward and backward a block begins and ends; whoever
// implements BlockParameters (parallel::ShardedBlocks) brings the parameters in and takes the gradients away, and gives
// each parameter its place (ParameterSet::place).
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
  // Draws what is kept from the distributions of the parameters that it is a part of; enqueues.
  virtual void draw(compute::Backend& backend, std::uint64_t seed) const = 0;

  // Each enqueues, also on a backend that records a plan. Blocks are counted in the order of forward, which goes from
  // the first to the last one, and backward back.
  virtual void begin_forward(compute::Backend& backend) = 0;
  virtual void before_forward(compute::Backend& backend,
                              std::size_t block) = 0;  // its parameters are read from here on
  virtual void before_backward(compute::Backend& backend,
                               std::size_t block) = 0;  // its gradients are written from here on
  // Its gradients are enqueued, and its parameters are read no more.
  virtual void after_backward(compute::Backend& backend, std::size_t block) = 0;
};

}  // namespace assay::train
