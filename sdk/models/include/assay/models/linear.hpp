// A linear layer, y = x w^T + bias, with explicit forward and backward.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/train/parameters.hpp>
#include <cstdint>
#include <string>

namespace assay::models {

class Linear {
 public:
  struct Options {
    bool bias = true;
    // Standard deviations of the initial values. Negative for the weight: 1 / sqrt(inputs). A bias that starts a little
    // beside 0 lets a verification find a step that forgets it.
    float weight_std = -1, bias_std = 0.1F;
  };

  // Adds `name`.weight [outputs, inputs] and `name`.bias [outputs] to the set, which must outlive the layer, as one
  // group: layers are to be added in the order in which backward finishes them, the last one first.
  Linear(train::ParameterSet& set, const std::string& name, std::int64_t inputs, std::int64_t outputs,
         const Options& options);
  Linear(train::ParameterSet& set, const std::string& name, std::int64_t inputs, std::int64_t outputs)
      : Linear(set, name, inputs, outputs, Options{}) {}

  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  train::ParameterSet::Id weight() const { return weight_; }
  bool has_bias() const { return has_bias_; }
  train::ParameterSet::Id bias() const { return bias_; }  // with has_bias()

  // x [rows, inputs] and y [rows, outputs] in the activations' dtype.
  void forward(compute::Backend& b, const compute::Tensor& x, const compute::Tensor& y) const;
  // dy [rows, outputs], in the activations' dtype as dx: the gradient by y. Writes the gradients by weight and bias,
  // and dx [rows, inputs], the gradient by x, unless dx is empty.
  void backward(compute::Backend& b, const compute::Tensor& dy, const compute::Tensor& x,
                const compute::Tensor& dx) const;

 private:
  const train::ParameterSet* set_;
  std::int64_t inputs_, outputs_;
  train::ParameterSet::Id weight_ = 0, bias_ = 0;
  bool has_bias_;
};

}  // namespace assay::models
