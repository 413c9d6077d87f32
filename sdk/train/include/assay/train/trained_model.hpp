// What a Trainer asks of a model: a model whose parameters are a ParameterSet's and whose temporary tensors lie in one
// BufferPlan. What its forward and backward read is the model's own.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/buffer_plan.hpp>

namespace assay::train {

class TrainedModel {
 public:
  TrainedModel() = default;
  TrainedModel(const TrainedModel&) = default;
  TrainedModel& operator=(const TrainedModel&) = default;
  TrainedModel(TrainedModel&&) = default;
  TrainedModel& operator=(TrainedModel&&) = default;
  virtual ~TrainedModel() = default;

  virtual const BufferPlan& plan() const = 0;  // solved
  // activation_bytes() at `activations`. With a backward `gradients` is the set's gradient arena: until a gradient is
  // written, its place may hold activations.
  virtual void bind(void* gradients, void* activations) = 0;
  virtual std::size_t activation_bytes() const = 0;
  // The gradient of the loss is multiplied by *scale (fp32 [1], empty: not).
  virtual void set_loss_scale(const compute::Tensor& scale) = 0;
  // i64 [1] in device memory, of which the masks of dropout depend. A model without dropout does not look at it.
  virtual void set_dropout_step(const compute::Tensor&) {}
  // Once after bind: tables that depend on the shape alone.
  virtual void initialize(compute::Backend& backend) const = 0;
  virtual compute::Tensor loss() const = 0;  // fp32 [1], of the last forward with labels
};

}  // namespace assay::train
