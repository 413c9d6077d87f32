#include "assay/models/linear.hpp"

#include <cmath>
#include <vector>

namespace assay::models {

namespace op = compute::op;

using compute::Tensor;

Linear::Linear(train::ParameterSet& set, const std::string& name, std::int64_t inputs, std::int64_t outputs,
               const Options& options)
    : set_(&set), inputs_(inputs), outputs_(outputs), has_bias_(options.bias) {
  const float std = options.weight_std >= 0 ? options.weight_std : 1.0F / std::sqrt(static_cast<float>(inputs));
  std::vector<train::Parameter> group{{.name = name + ".weight", .dims = {outputs, inputs}, .init_std = std}};
  if (has_bias_) group.push_back({.name = name + ".bias", .dims = {outputs}, .init_std = options.bias_std});
  weight_ = set.add(group);
  bias_ = weight_ + 1;
}

void Linear::forward(compute::Backend& b, const Tensor& x, const Tensor& y) const {
  b.run(op::Matmul{.a = x,
                   .b = set_->compute(weight_),
                   .c = y,
                   .transpose_b = true,
                   .bias = has_bias_ ? set_->compute(bias_) : Tensor()});
}

void Linear::backward(compute::Backend& b, const Tensor& dy, const Tensor& x, const Tensor& dx) const {
  b.run(op::Matmul{.a = dy, .b = x, .c = set_->gradient(weight_), .transpose_a = true});
  if (has_bias_) b.run(op::BiasBackward{.dy = dy, .dbias = set_->gradient(bias_)});
  if (dx) b.run(op::Matmul{.a = dy, .b = set_->compute(weight_), .c = dx});
}

}  // namespace assay::models
