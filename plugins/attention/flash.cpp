// Attention without the matrix of all scores: the backend's own. It keeps a number for each query.
#include "algorithm.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::AttentionShape;
using assay::compute::Backend;
using assay::compute::DType;
using assay::compute::Tensor;

namespace {

class Flash final : public Algorithm {
 public:
  Flash(const Problem& p, const Operands& operands, bool differentiable)
      : at_(operands),
        shape_{.scale = p.scale(), .causal = p.causal, .window = p.window},
        documents_(p),
        differentiable_(differentiable),
        lse_(ASSAY_MEMORY_ACTIVATIONS, "log-sum-exp", DType::f32, {p.batch, p.heads, p.seq}) {}

  Slots inputs() override { return documents_.slots(); }
  Slots forward_only() override { return differentiable_ ? Slots{} : Slots{&lse_}; }
  Slots kept() override { return differentiable_ ? Slots{&lse_} : Slots{}; }

  void initialize(Backend& b) const override { documents_.initialize(b); }
  void forward(Backend& b) const override {
    say_what_serves([&] {
      b.run(op::AttentionForward{.q = by_time(at_.q),
                                 .k = by_time(at_.k),
                                 .v = by_time(at_.v),
                                 .out = by_time(at_.out),
                                 .lse = lse_,
                                 .shape = shape()});
    });
  }
  void backward(Backend& b) const override {
    say_what_serves([&] {
      b.run(op::AttentionBackward{.q = by_time(at_.q),
                                  .k = by_time(at_.k),
                                  .v = by_time(at_.v),
                                  .out = by_time(at_.out),
                                  .lse = lse_,
                                  .dout = by_time(at_.dout),
                                  .dq = by_time(at_.dq),
                                  .dk = by_time(at_.dk),
                                  .dv = by_time(at_.dv),
                                  .shape = shape()});
    });
  }

 private:
  AttentionShape shape() const {
    AttentionShape shape = shape_;
    shape.documents = documents_.get();
    return shape;
  }
  static Tensor by_time(const Tensor& t) { return t.transposed(1, 2); }  // [B, T, H, D]

  const Operands& at_;
  AttentionShape shape_;
  DocumentSlots documents_;
  bool differentiable_;
  Slot lse_;
};

}  // namespace

std::unique_ptr<Algorithm> make_flash(const Problem& p, const Operands& operands, bool differentiable) {
  return std::make_unique<Flash>(p, operands, differentiable);
}

}  // namespace attention
