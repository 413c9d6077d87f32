// Attention with the matrix of all scores, in two ways: `Eager` as a framework runs it, an operation and a result in
// memory at a time; `Fused` as a compiler would rewrite it.
#include <algorithm>
#include <cmath>

#include "algorithm.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::Backend;
using assay::compute::Tensor;

namespace {

Slot score_matrix(const Problem& p, const char* name) {
  return {ASSAY_MEMORY_ACTIVATIONS, name, p.dtype, {p.batch, p.heads, p.seq, p.seq}};
}

// Three score matrices at most: the result of each pass beside what it is made from, and the probabilities.
class Eager final : public Algorithm {
 public:
  Eager(const Problem& p, const Operands& operands, bool differentiable)
      : problem_(p),
        at_(operands),
        differentiable_(differentiable),
        mask_(ASSAY_MEMORY_DATA, "mask", p.dtype, {p.seq, p.seq}),
        scores_(score_matrix(p, "scores")),
        probabilities_(score_matrix(p, "probabilities")),
        dscores_(score_matrix(p, "gradient of scores")) {}

  Slots inputs() override { return problem_.causal ? Slots{&mask_} : Slots{}; }
  Slots forward_only() override { return differentiable_ ? Slots{&scores_} : Slots{&scores_, &probabilities_}; }
  Slots kept() override { return differentiable_ ? Slots{&probabilities_} : Slots{}; }
  Slots backward_only() override { return {&scores_, &dscores_}; }

  // 0 where the key is visible, -infinity elsewhere.
  void initialize(Backend& b) const override {
    if (!problem_.causal) return;
    b.run(op::Fill{.x = mask_, .value = -INFINITY});
    const Tensor& mask = mask_;
    const assay::models::DocumentPlaces documents(problem_.documents, 1);
    for (std::int64_t row = 0; row < problem_.seq; ++row) {
      std::int64_t first = problem_.window > 0 ? std::max<std::int64_t>(0, row + 1 - problem_.window) : 0;
      if (!documents.first_keys.empty())
        first = std::max<std::int64_t>(first, documents.first_keys[static_cast<std::size_t>(row)]);
      b.run(op::Fill{.x = mask.slice(0, row, 1).view({problem_.seq}).slice(0, first, row + 1 - first), .value = 0.0});
    }
  }

  void forward(Backend& b) const override {
    const Tensor& scores = scores_;
    const Tensor& probabilities = probabilities_;
    const std::int64_t matrices = problem_.head_count(), elements = problem_.seq * problem_.seq;
    if (problem_.causal) {
      b.run(op::Matmul{.a = at_.q, .b = at_.k, .c = scores, .transpose_b = true});
      b.run(op::Scale{.x = scores, .factor = problem_.scale(), .out = probabilities});
      // A bias of a row for every row of a matrix: the mask for every score matrix.
      b.run(op::BiasAdd{.x = probabilities.view({matrices, elements}),
                        .bias = mask_->view({elements}),
                        .y = scores.view({matrices, elements})});
    } else {
      b.run(op::Matmul{.a = at_.q, .b = at_.k, .c = probabilities, .transpose_b = true});
      b.run(op::Scale{.x = probabilities, .factor = problem_.scale(), .out = scores});
    }
    b.run(op::SoftmaxForward{.x = scores, .y = probabilities, .scale = 1.0F, .causal = false});
    b.run(op::Matmul{.a = probabilities, .b = at_.v, .c = at_.out});
  }

  // Adding a mask has the gradient of its sum: no pass.
  void backward(Backend& b) const override {
    b.run(op::Matmul{.a = probabilities_, .b = at_.dout, .c = at_.dv, .transpose_a = true});
    b.run(op::Matmul{.a = at_.dout, .b = at_.v, .c = scores_, .transpose_b = true});
    b.run(op::SoftmaxBackward{.y = probabilities_, .dy = scores_, .dx = dscores_, .scale = 1.0F});
    b.run(op::Scale{.x = dscores_, .factor = problem_.scale(), .out = scores_});
    b.run(op::Matmul{.a = scores_, .b = at_.k, .c = at_.dq});
    b.run(op::Matmul{.a = scores_, .b = at_.q, .c = at_.dk, .transpose_a = true});
  }

 private:
  Problem problem_;
  const Operands& at_;
  bool differentiable_;
  Slot mask_, scores_, probabilities_, dscores_;
};

// One score matrix, and one more for its gradient: scale, mask and softmax are a single pass in place.
class Fused final : public Algorithm {
 public:
  Fused(const Problem& p, const Operands& operands, bool differentiable)
      : problem_(p),
        at_(operands),
        documents_(p),
        differentiable_(differentiable),
        scores_(score_matrix(p, "scores")),
        dscores_(score_matrix(p, "gradient of scores")) {}

  Slots inputs() override { return documents_.slots(); }
  void initialize(Backend& b) const override { documents_.initialize(b); }
  Slots forward_only() override { return differentiable_ ? Slots{} : Slots{&scores_}; }
  Slots kept() override { return differentiable_ ? Slots{&scores_} : Slots{}; }
  Slots backward_only() override { return {&dscores_}; }

  void forward(Backend& b) const override {
    b.run(op::Matmul{.a = at_.q, .b = at_.k, .c = scores_, .transpose_b = true});
    b.run(op::SoftmaxForward{.x = scores_,
                             .y = scores_,
                             .scale = problem_.scale(),
                             .causal = problem_.causal,
                             .window = problem_.window,
                             .first_keys = documents_.get().first_keys});
    b.run(op::Matmul{.a = scores_, .b = at_.v, .c = at_.out});
  }

  void backward(Backend& b) const override {
    b.run(op::Matmul{.a = scores_, .b = at_.dout, .c = at_.dv, .transpose_a = true});
    b.run(op::Matmul{.a = at_.dout, .b = at_.v, .c = dscores_, .transpose_b = true});
    b.run(op::SoftmaxBackward{.y = scores_, .dy = dscores_, .dx = dscores_, .scale = problem_.scale()});
    b.run(op::Matmul{.a = dscores_, .b = at_.k, .c = at_.dq});
    b.run(op::Matmul{.a = dscores_, .b = at_.q, .c = at_.dk, .transpose_a = true});
  }

 private:
  Problem problem_;
  const Operands& at_;
  DocumentSlots documents_;
  bool differentiable_;
  Slot scores_, dscores_;
};

}  // namespace

std::unique_ptr<Algorithm> make_eager(const Problem& p, const Operands& operands, bool differentiable) {
  return std::make_unique<Eager>(p, operands, differentiable);
}

std::unique_ptr<Algorithm> make_fused(const Problem& p, const Operands& operands, bool differentiable) {
  return std::make_unique<Fused>(p, operands, differentiable);
}

}  // namespace attention
