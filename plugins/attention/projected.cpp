// Attention as a layer: q, k, v = x Wq', x Wk', x Wv'; y = attention(q, k, v) Wo'. Weights are [out, in], without
// biases.
#include <assay/workload/host_copies.hpp>
#include <cmath>

#include "layer.hpp"
#include "sketch.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::Backend;
using assay::compute::Tensor;

namespace {

class Projected final : public Layer {
 public:
  Projected(const Settings& s, Operands& operands, std::unique_ptr<Algorithm> algorithm, bool differentiable)
      : problem_(s.problem),
        eager_(s.execution == Execution::eager),
        differentiable_(differentiable),
        at_(operands),
        algorithm_(std::move(algorithm)),
        wq_(weight("q_proj.weight", ASSAY_MEMORY_PARAMETERS)),
        wk_(weight("k_proj.weight", ASSAY_MEMORY_PARAMETERS)),
        wv_(weight("v_proj.weight", ASSAY_MEMORY_PARAMETERS)),
        wo_(weight("output_proj.weight", ASSAY_MEMORY_PARAMETERS)),
        x_(by_token("x", ASSAY_MEMORY_DATA)),
        y_(by_token("y", ASSAY_MEMORY_ACTIVATIONS)),
        dy_(by_token("dy", ASSAY_MEMORY_DATA)),
        dx_(by_token("dx", ASSAY_MEMORY_GRADIENTS)),
        part_(by_token("part of dx", ASSAY_MEMORY_ACTIVATIONS)),
        dwq_(weight("gradient of q_proj.weight", ASSAY_MEMORY_GRADIENTS)),
        dwk_(weight("gradient of k_proj.weight", ASSAY_MEMORY_GRADIENTS)),
        dwv_(weight("gradient of v_proj.weight", ASSAY_MEMORY_GRADIENTS)),
        dwo_(weight("gradient of output_proj.weight", ASSAY_MEMORY_GRADIENTS)) {}

  Slots model() override { return {&wq_, &wk_, &wv_, &wo_}; }
  Slots inputs() override { return joined({&x_}, algorithm_->inputs()); }
  Slots forward_only() override { return joined(differentiable_ ? Slots{} : operands(), algorithm_->forward_only()); }
  Slots kept() override { return joined(differentiable_ ? operands() : Slots{}, algorithm_->kept()); }
  Slots results() override { return {&y_}; }
  Slot& result_gradient() override { return dy_; }
  Slots gradients() override { return {&dx_, &dwq_, &dwk_, &dwv_, &dwo_}; }
  Slots backward_only() override {
    Slots slots{&at_.dout, &at_.dq, &at_.dk, &at_.dv};
    if (eager_) slots.push_back(&part_);
    return joined(std::move(slots), algorithm_->backward_only());
  }

  // Weights that leave q, k and v with the deviation of x, which is 1.
  void initialize_model(Backend& b, std::uint64_t seed) const override {
    const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(problem_.width())));
    std::uint64_t stream = first_weight_stream;
    for (const Slot* w : {&wq_, &wk_, &wv_, &wo_})
      b.run(op::RandomNormal{.x = *w, .seed = seed, .stream = stream++, .mean = 0, .std = deviation});
  }
  void initialize_inputs(Backend& b, std::uint64_t seed) const override {
    b.run(op::RandomNormal{.x = x_, .seed = seed, .stream = x_stream, .mean = 0, .std = 1});
    algorithm_->initialize(b);
  }

  void forward(Backend& b) const override {
    b.run(op::Matmul{.a = x_, .b = wq_, .c = rows_of(at_.q), .transpose_b = true});
    b.run(op::Matmul{.a = x_, .b = wk_, .c = rows_of(at_.k), .transpose_b = true});
    b.run(op::Matmul{.a = x_, .b = wv_, .c = rows_of(at_.v), .transpose_b = true});
    algorithm_->forward(b);
    b.run(op::Matmul{.a = rows_of(at_.out), .b = wo_, .c = y_, .transpose_b = true});
  }

  void backward(Backend& b) const override {
    b.run(op::Matmul{.a = dy_, .b = rows_of(at_.out), .c = dwo_, .transpose_a = true});
    b.run(op::Matmul{.a = dy_, .b = wo_, .c = rows_of(at_.dout)});
    algorithm_->backward(b);
    b.run(op::Matmul{.a = rows_of(at_.dq), .b = x_, .c = dwq_, .transpose_a = true});
    b.run(op::Matmul{.a = rows_of(at_.dk), .b = x_, .c = dwk_, .transpose_a = true});
    b.run(op::Matmul{.a = rows_of(at_.dv), .b = x_, .c = dwv_, .transpose_a = true});
    b.run(op::Matmul{.a = rows_of(at_.dq), .b = wq_, .c = dx_});
    add_to_dx(b, at_.dk, wk_);
    add_to_dx(b, at_.dv, wv_);
  }

  std::int64_t row_of(std::int64_t head_index, std::int64_t query) const override {
    return head_index / problem_.heads * problem_.seq + query;
  }

  std::vector<ProductError> forward_errors(Backend& b) const override {
    std::vector<ProductError> errors;
    const auto add = [&](const char* name, const Tensor& product, const Tensor& factor, const Tensor& weight) {
      const Sums exact = product_of(matrix(b, factor), column_sums(matrix(b, weight)));
      errors.push_back({name, row_sums(matrix(b, product)).worst_error(exact)});
    };
    add("q", rows_of(at_.q), x_, wq_);
    add("k", rows_of(at_.k), x_, wk_);
    add("v", rows_of(at_.v), x_, wv_);
    add("y", y_, rows_of(at_.out), wo_);
    return errors;
  }

  std::vector<ProductError> backward_errors(Backend& b) const override {
    std::vector<ProductError> errors;
    const auto add = [&](const char* name, const Tensor& result, const Sums& exact) {
      errors.push_back({name, row_sums(matrix(b, result)).worst_error(exact)});
    };
    const auto by_input = [&](const Tensor& gradient, const Tensor& weight) {
      return product_of(matrix(b, gradient), row_sums(matrix(b, weight)));
    };
    const auto by_weight = [&](const Tensor& gradient, const Tensor& input) {
      return transposed_product_of(matrix(b, gradient), row_sums(matrix(b, input)));
    };
    add("dout", rows_of(at_.dout), by_input(dy_, wo_));
    add("dWo", dwo_, by_weight(dy_, rows_of(at_.out)));
    add("dWq", dwq_, by_weight(rows_of(at_.dq), x_));
    add("dWk", dwk_, by_weight(rows_of(at_.dk), x_));
    add("dWv", dwv_, by_weight(rows_of(at_.dv), x_));
    Sums dx = by_input(rows_of(at_.dq), wq_);
    dx.add(by_input(rows_of(at_.dk), wk_));
    dx.add(by_input(rows_of(at_.dv), wv_));
    add("dx", dx_, dx);
    return errors;
  }

 private:
  Slot weight(const char* name, assay_memory_kind kind) const {
    return {kind, name, problem_.dtype, {problem_.width(), problem_.width()}};
  }
  Slot by_token(const char* name, assay_memory_kind kind) const {
    return {kind, name, problem_.dtype, {problem_.tokens(), problem_.width()}};
  }
  Slots operands() const { return {&at_.q, &at_.k, &at_.v, &at_.out}; }

  // An operand as a matrix of a row for each token.
  Tensor rows_of(const Tensor& operand) const {
    return operand.transposed(1, 2).view({problem_.tokens(), problem_.width()});
  }

  // One operation at a time makes each part of a sum before it adds it.
  void add_to_dx(Backend& b, const Tensor& gradient, const Tensor& weight) const {
    if (!eager_) return b.run(op::Matmul{.a = rows_of(gradient), .b = weight, .c = dx_, .accumulate = true});
    b.run(op::Matmul{.a = rows_of(gradient), .b = weight, .c = part_});
    b.run(op::Add{.a = dx_, .b = part_, .out = dx_});
  }

  static Matrix matrix(Backend& b, const Tensor& t) {
    return {t.dim(0), t.dim(1), [&b, t](std::int64_t first, std::int64_t count) {
              return assay::workload::download_f32(b, t.slice(0, first, count));
            }};
  }

  Problem problem_;
  bool eager_, differentiable_;
  Operands& at_;
  std::unique_ptr<Algorithm> algorithm_;
  Slot wq_, wk_, wv_, wo_, x_, y_, dy_, dx_, part_, dwq_, dwk_, dwv_, dwo_;
};

}  // namespace

std::unique_ptr<Layer> make_projected(const Settings& settings, Operands& operands,
                                      std::unique_ptr<Algorithm> algorithm, bool differentiable) {
  return std::make_unique<Projected>(settings, operands, std::move(algorithm), differentiable);
}

}  // namespace attention
