// A Trainer knows a model by this interface: its parameters are a ParameterSet's, and its temporary tensors lie in one
// BufferPlan, which the model's constructor makes (step_recording.hpp), without a device. The inputs of its forward and
// backward are the model's own affair.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/buffer_plan.hpp>
#include <cstddef>

namespace assay::train {

class Model {
 public:
  Model() = default;
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  virtual ~Model() = default;

  const BufferPlan& plan() const { return plan_; }
  // `activations` has activation_bytes(). With a backward `gradients` is the set's gradient arena: until a gradient is
  // written, its place may hold activations.
  void bind(void* gradients, void* activations) { plan_.bind(gradients, activations); }
  std::size_t activation_bytes() const { return plan_.own_bytes(); }

  // The gradient of the loss is to be multiplied by *scale (fp32 [1], empty: not). A model that is not trained in fp16
  // need not look at it.
  virtual void set_loss_scale(const compute::Tensor&) {}
  // The step is i64 [1] in device memory; the masks of dropout depend on it. A model without dropout does not look at
  // it.
  virtual void set_dropout_step(const compute::Tensor&) {}
  // Of a model whose backward uses the side lane itself, or depends on the optimizer's step number, which an update
  // beside backward raises meanwhile: no.
  virtual bool allows_update_beside_backward() const { return true; }
  // Of a model that compares numbers to pick what a token passes through, such as top-k routing: a rounding of an earlier
  // step may send some tokens elsewhere.
  virtual bool picks_by_comparison() const { return false; }
  // Called once after bind: fills the tables that depend only on the shape.
  virtual void initialize(compute::Backend&) const {}
  virtual compute::Tensor loss() const = 0;  // fp32 [1], from the last forward with labels
  // Flat: the result of a step without a backward, if it makes no loss; empty if it always makes one.
  virtual compute::Tensor forward_result() const { return {}; }

 protected:
  BufferPlan plan_;  // solved when the constructor is done
};

}  // namespace assay::train
