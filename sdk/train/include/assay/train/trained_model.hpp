// A Trainer knows a model by this interface: its parameters are a ParameterSet's, and its temporary tensors lie in one
// BufferPlan. The inputs of its forward and backward are the model's own affair.
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
  // `activations` has activation_bytes(). With a backward `gradients` is the set's gradient arena: until a gradient is
  // written, its place may hold activations.
  virtual void bind(void* gradients, void* activations) = 0;
  virtual std::size_t activation_bytes() const = 0;
  // The gradient of the loss is multiplied by *scale (fp32 [1], empty: not).
  virtual void set_loss_scale(const compute::Tensor& scale) = 0;
  // The step is i64 [1] in device memory; the masks of dropout depend on it. A model without dropout does not look at
  // it.
  virtual void set_dropout_step(const compute::Tensor&) {}
  // To be called once after bind: fills the tables that depend on the shape alone.
  virtual void initialize(compute::Backend& backend) const = 0;
  virtual compute::Tensor loss() const = 0;  // fp32 [1], from the last forward with labels
};

}  // namespace assay::train
