#include "layer.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::Backend;
using assay::compute::Tensor;

namespace {

// Attention of tensors that are given.
class Alone final : public Layer {
 public:
  Alone(const Problem& problem, Operands& operands, std::unique_ptr<Algorithm> algorithm)
      : problem_(problem), at_(operands), algorithm_(std::move(algorithm)) {}

  Slots inputs() override { return joined({&at_.q, &at_.k, &at_.v}, algorithm_->inputs()); }
  Slots forward_only() override { return algorithm_->forward_only(); }
  Slots kept() override { return algorithm_->kept(); }
  Slots results() override { return {&at_.out}; }
  Slot& result_gradient() override { return at_.dout; }
  Slots gradients() override { return {&at_.dq, &at_.dk, &at_.dv}; }
  Slots backward_only() override { return algorithm_->backward_only(); }

  void initialize_inputs(Backend& b, std::uint64_t seed) const override {
    const Tensor q = at_.q.in_memory_order(), k = at_.k.in_memory_order(), v = at_.v.in_memory_order();
    b.run(op::RandomNormal{.x = q, .seed = seed, .stream = q_stream, .mean = 0, .std = 1});
    b.run(op::RandomNormal{.x = k, .seed = seed, .stream = k_stream, .mean = 0, .std = 1});
    b.run(op::RandomNormal{.x = v, .seed = seed, .stream = v_stream, .mean = 0, .std = 1});
    algorithm_->initialize(b);
  }
  void forward(Backend& b) const override { algorithm_->forward(b); }
  void backward(Backend& b) const override { algorithm_->backward(b); }
  std::int64_t row_of(std::int64_t head_index, std::int64_t query) const override {
    const Problem& p = problem_;
    if (!p.is_by_token()) return head_index * p.seq + query;
    return (head_index / p.heads * p.seq + query) * p.heads + head_index % p.heads;
  }

 private:
  Problem problem_;
  Operands& at_;
  std::unique_ptr<Algorithm> algorithm_;
};

std::unique_ptr<Algorithm> algorithm_of(const Settings& s, const Operands& operands, bool differentiable) {
  if (s.implementation == Implementation::flash) return make_flash(s.problem, operands, differentiable);
  return s.execution == Execution::eager ? make_eager(s.problem, operands, differentiable)
                                         : make_fused(s.problem, operands, differentiable);
}

}  // namespace

std::unique_ptr<Layer> make_layer(const Settings& s, Operands& operands) {
  const bool differentiable = s.pass != Pass::forward;
  auto algorithm = algorithm_of(s, operands, differentiable);
  if (s.problem.projections) return make_projected(s, operands, std::move(algorithm), differentiable);
  return std::make_unique<Alone>(s.problem, operands, std::move(algorithm));
}

}  // namespace attention
