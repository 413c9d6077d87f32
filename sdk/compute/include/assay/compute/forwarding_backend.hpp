// A compute backend that hands every call to another one: what looks on, or changes one operation, overrides that
// alone.
#pragma once
#include <assay/compute/backend.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace assay::compute {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& real) : real_(real) {}  // which outlives this one

  const char* kind() const override { return real_.kind(); }
  void set_mode(Mode mode) override { real_.set_mode(mode); }
  void synchronize() override { real_.synchronize(); }
  std::size_t workspace_bytes() const override { return real_.workspace_bytes(); }
  void set_workspace(void* address, std::size_t bytes) override { real_.set_workspace(address, bytes); }
  std::vector<PrimitiveInfo> primitives() const override { return real_.primitives(); }
  void set_product_math(ProductMath math) override { real_.set_product_math(math); }
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override { return real_.capture(enqueue); }
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override {
    return real_.open_feed(slots, bytes_per_slot, device_memory);
  }
  void begin_side() override { real_.begin_side(); }
  void end_side() override { real_.end_side(); }
  void join_side() override { real_.join_side(); }

  void upload(const Tensor& to, const void* host_source) override { real_.upload(to, host_source); }
  void download(void* host_target, const Tensor& from) override { real_.download(host_target, from); }
  void fill(const Tensor& x, double value) override { real_.fill(x, value); }
  void copy(const Tensor& to, const Tensor& from) override { real_.copy(to, from); }
  void random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) override {
    real_.random_normal(x, seed, stream, mean, std);
  }
  void random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                       std::int64_t high) override {
    real_.random_integers(x, seed, stream, low, high);
  }

  void matmul(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options) override {
    real_.matmul(a, b, c, options);
  }

  void add(const Tensor& a, const Tensor& b, const Tensor& out) override { real_.add(a, b, out); }
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override { real_.multiply(a, b, out); }
  void scale(const Tensor& x, float factor, const Tensor& out) override { real_.scale(x, factor, out); }
  void activation_forward(Activation kind, const Tensor& x, const Tensor& y) override {
    real_.activation_forward(kind, x, y);
  }
  void activation_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) override {
    real_.activation_backward(kind, x, dy, dx);
  }
  void bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) override { real_.bias_add(x, bias, y); }
  void bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) override {
    real_.bias_backward(dy, dbias, accumulate);
  }
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) override {
    real_.swiglu_forward(gate, up, h);
  }
  void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate, const Tensor& dup,
                       const Tensor& h) override {
    real_.swiglu_backward(gate, up, dh, dgate, dup, h);
  }
  void dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
               const Tensor& step) override {
    real_.dropout(x, y, probability, seed, stream, step);
  }
  void bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                 const Dropout& dropout) override {
    real_.bias_relu_dropout_forward(x, bias, y, dropout);
  }
  void relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) override {
    real_.relu_dropout_backward(y, dy, dx, probability);
  }

  void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) override {
    real_.embedding_forward(ids, table, out);
  }
  void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) override {
    real_.embedding_backward(ids, dout, dtable, accumulate);
  }
  void rotary_table(const Tensor& cos, const Tensor& sin, double theta) override {
    real_.rotary_table(cos, sin, theta);
  }
  void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) override {
    real_.rotary(x, cos, sin, inverse);
  }

  void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                        float eps) override {
    real_.rms_norm_forward(x, weight, y, rstd, eps);
  }
  void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                            const Tensor& y, const Tensor& rstd, float eps) override {
    real_.add_rms_norm_forward(x, residual, sum, weight, y, rstd, eps);
  }
  void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                         const Tensor& residual, const Tensor& dx, const Tensor& dweight, bool accumulate_dweight,
                         const Tensor& y) override {
    real_.rms_norm_backward(dy, x, weight, rstd, residual, dx, dweight, accumulate_dweight, y);
  }
  void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                          const Tensor& mean, const Tensor& rstd, float eps) override {
    real_.layer_norm_forward(x, weight, bias, y, mean, rstd, eps);
  }
  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                           const Tensor& dbias, bool accumulate_dweight) override {
    real_.layer_norm_backward(dy, x, weight, mean, rstd, residual, dx, dweight, dbias, accumulate_dweight);
  }
  void dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                      const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                      const Tensor& norm_bias, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                                      float eps) override {
    real_.dropout_add_layer_norm_forward(x, bias, residual, dropout, sum, weight, norm_bias, y, mean, rstd, eps);
  }
  void dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const Dropout& dropout, const Tensor& dsum, const Tensor& dx,
                                       const Tensor& dbias, const Tensor& dweight, const Tensor& dnorm_bias,
                                       bool accumulate) override {
    real_.dropout_add_layer_norm_backward(dy, sum, weight, mean, rstd, dropout, dsum, dx, dbias, dweight, dnorm_bias,
                                          accumulate);
  }

  void softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) override {
    real_.softmax_forward(x, y, scale, causal);
  }
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) override {
    real_.softmax_backward(y, dy, dx, scale);
  }
  void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                         const AttentionShape& shape) override {
    real_.attention_forward(q, k, v, out, lse, shape);
  }
  void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                          const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                          const AttentionShape& shape) override {
    real_.attention_backward(q, k, v, out, lse, dout, dq, dk, dv, shape);
  }
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                             const Tensor& lse) override {
    real_.cross_entropy_forward(logits, labels, losses, lse);
  }
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                              const Tensor& loss_scale, const Tensor& dlogits) override {
    real_.cross_entropy_backward(logits, labels, lse, scale, loss_scale, dlogits);
  }
  void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                              const Tensor& loss_scale) override {
    real_.cross_entropy_in_place(logits, labels, losses, scale, loss_scale);
  }

  void sum(const Tensor& x, const Tensor& out, float factor) override { real_.sum(x, out, factor); }
  void sum_of_squares(const Tensor& x, const Tensor& out) override { real_.sum_of_squares(x, out); }
  void max_abs(const Tensor& x, const Tensor& out) override { real_.max_abs(x, out); }
  void count_nonfinite(const Tensor& x, const Tensor& out) override { real_.count_nonfinite(x, out); }
  void ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) override {
    real_.ordered_sum(x, out, options);
  }
  void ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) override {
    real_.ordered_dot(x, y, out, options);
  }

  void advance(const Tensor& step, const LossScale& loss_scale) override { real_.advance(step, loss_scale); }
  void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v, const Tensor& step,
             const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
             const LossScale& loss_scale) override {
    real_.adamw(parameter, gradient, m, v, step, lr, options, compute_copy, loss_scale);
  }
  void sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
           const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
           const LossScale& loss_scale) override {
    real_.sgd(parameter, gradient, momentum, step, lr, options, compute_copy, loss_scale);
  }
  void update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                         const LossScaleOptions& options) override {
    real_.update_loss_scale(loss_scale, good_steps, skipped_steps, options);
  }

 protected:
  Backend& real() const { return real_; }

 private:
  Backend& real_;
};

}  // namespace assay::compute
