// A compute backend that has bf16 and fp16 whatever the real one has: a CPU has no fp16, and many have no bf16. An
// operation is carried out in fp32 on wider copies of its tensors, and what it has written is rounded. So does a GPU,
// whose sums and functions are fp32 too. It also scales losses, which the CPU refuses to. For small models alone.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <list>
#include <memory>
#include <vector>

#include "values.hpp"

namespace assay::mutants {

class NarrowBackend final : public compute::ForwardingBackend {
  using Tensor = compute::Tensor;
  using Dropout = compute::Dropout;
  using AttentionShape = compute::AttentionShape;

 public:
  explicit NarrowBackend(std::unique_ptr<compute::Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}

  void set_mode(compute::Mode mode) override {
    mode_ = mode;
    real().set_mode(mode);
  }

  void fill(const Tensor& x, double value) override {
    widened([&](const Tensor& a) { real().fill(a, value); }, x);
  }
  void copy(const Tensor& to, const Tensor& from) override {
    widened([&](const Tensor& a, const Tensor& b) { real().copy(a, b); }, to, from);
  }
  void random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) override {
    widened([&](const Tensor& a) { real().random_normal(a, seed, stream, mean, std); }, x);
  }
  void matmul(const Tensor& a, const Tensor& b, const Tensor& c, const compute::MatmulOptions& options) override {
    if (is_narrow(a) && c.elements() > most_elements) return;  // measures the device's rate
    widened(
        [&](const Tensor& x, const Tensor& y, const Tensor& z, const Tensor& bias) {
          compute::MatmulOptions o = options;
          o.bias = bias;
          real().matmul(x, y, z, o);
        },
        a, b, c, options.bias);
  }

  void add(const Tensor& a, const Tensor& b, const Tensor& out) override {
    widened([&](const auto&... t) { real().add(t...); }, a, b, out);
  }
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override {
    widened([&](const auto&... t) { real().multiply(t...); }, a, b, out);
  }
  void scale(const Tensor& x, float factor, const Tensor& out) override {
    widened([&](const Tensor& a, const Tensor& b) { real().scale(a, factor, b); }, x, out);
  }
  void activation_forward(compute::Activation kind, const Tensor& x, const Tensor& y) override {
    widened([&](const auto&... t) { real().activation_forward(kind, t...); }, x, y);
  }
  void activation_backward(compute::Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) override {
    widened([&](const auto&... t) { real().activation_backward(kind, t...); }, x, dy, dx);
  }
  void bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) override {
    widened([&](const auto&... t) { real().bias_add(t...); }, x, bias, y);
  }
  void bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) override {
    widened([&](const auto&... t) { real().bias_backward(t..., accumulate); }, dy, dbias);
  }
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) override {
    widened([&](const auto&... t) { real().swiglu_forward(t...); }, gate, up, h);
  }
  void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate, const Tensor& dup,
                       const Tensor& h) override {
    widened([&](const auto&... t) { real().swiglu_backward(t...); }, gate, up, dh, dgate, dup, h);
  }
  void dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
               const Tensor& step) override {
    widened([&](const auto&... t) { real().dropout(t..., probability, seed, stream, step); }, x, y);
  }
  void bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                 const Dropout& dropout) override {
    widened([&](const auto&... t) { real().bias_relu_dropout_forward(t..., dropout); }, x, bias, y);
  }
  void relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) override {
    widened([&](const auto&... t) { real().relu_dropout_backward(t..., probability); }, y, dy, dx);
  }

  void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) override {
    widened([&](const auto&... t) { real().embedding_forward(ids, t...); }, table, out);
  }
  void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) override {
    widened([&](const auto&... t) { real().embedding_backward(ids, t..., accumulate); }, dout, dtable);
  }
  void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) override {
    widened([&](const Tensor& a) { real().rotary(a, cos, sin, inverse); }, x);
  }

  void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                        float eps) override {
    widened([&](const auto&... t) { real().rms_norm_forward(t..., rstd, eps); }, x, weight, y);
  }
  void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                            const Tensor& y, const Tensor& rstd, float eps) override {
    widened([&](const auto&... t) { real().add_rms_norm_forward(t..., rstd, eps); }, x, residual, sum, weight, y);
  }
  void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                         const Tensor& residual, const Tensor& dx, const Tensor& dweight, bool accumulate,
                         const Tensor& y) override {
    widened([&](const Tensor& a, const Tensor& b, const Tensor& w, const Tensor& r, const Tensor& da, const Tensor& dw,
                const Tensor& again) { real().rms_norm_backward(a, b, w, rstd, r, da, dw, accumulate, again); },
            dy, x, weight, residual, dx, dweight, y);
  }
  void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                          const Tensor& mean, const Tensor& rstd, float eps) override {
    widened([&](const auto&... t) { real().layer_norm_forward(t..., mean, rstd, eps); }, x, weight, bias, y);
  }
  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                           const Tensor& dbias, bool accumulate) override {
    widened([&](const auto&... t) { real().layer_norm_backward(t..., accumulate); }, dy, x, weight, mean, rstd,
            residual, dx, dweight, dbias);
  }
  void dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                      const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                      const Tensor& norm_bias, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                                      float eps) override {
    widened([&](const Tensor& a, const Tensor& b, const Tensor& r,
                const auto&... t) { real().dropout_add_layer_norm_forward(a, b, r, dropout, t..., mean, rstd, eps); },
            x, bias, residual, sum, weight, norm_bias, y);
  }
  void dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const Dropout& dropout, const Tensor& dsum, const Tensor& dx,
                                       const Tensor& dbias, const Tensor& dweight, const Tensor& dnorm_bias,
                                       bool accumulate) override {
    widened(
        [&](const Tensor& a, const Tensor& b, const Tensor& w, const auto&... t) {
          real().dropout_add_layer_norm_backward(a, b, w, mean, rstd, dropout, t..., accumulate);
        },
        dy, sum, weight, dsum, dx, dbias, dweight, dnorm_bias);
  }

  void softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) override {
    widened([&](const auto&... t) { real().softmax_forward(t..., scale, causal); }, x, y);
  }
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) override {
    widened([&](const auto&... t) { real().softmax_backward(t..., scale); }, y, dy, dx);
  }
  void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                         const AttentionShape& shape) override {
    widened([&](const auto&... t) { real().attention_forward(t..., lse, shape); }, q, k, v, out);
  }
  void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                          const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                          const AttentionShape& shape) override {
    widened([&](const auto&... t) { real().attention_backward(t..., shape); }, q, k, v, out, lse, dout, dq, dk, dv);
  }
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                             const Tensor& lse) override {
    widened([&](const Tensor& a) { real().cross_entropy_forward(a, labels, losses, lse); }, logits);
  }
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                              const Tensor& loss_scale, const Tensor& dlogits) override {
    const float factor = scale * number(loss_scale, 1);
    widened([&](const Tensor& a, const Tensor& b) { real().cross_entropy_backward(a, labels, lse, factor, {}, b); },
            logits, dlogits);
  }
  void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                              const Tensor& loss_scale) override {
    const float factor = scale * number(loss_scale, 1);
    widened([&](const Tensor& a) { real().cross_entropy_in_place(a, labels, losses, factor, {}); }, logits);
  }

  void advance(const Tensor& step, const compute::LossScale& loss_scale) override {
    if (number(loss_scale.nonfinite, 0) == 0) real().advance(step, {});
  }
  void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v, const Tensor& step,
             const Tensor& lr, const compute::AdamWOptions& options, const Tensor& compute_copy,
             const compute::LossScale& loss_scale) override {
    const bool serves = gradient.dtype == compute::DType::bf16 || !loss_scale.scale;
    if (serves) return real().adamw(parameter, gradient, m, v, step, lr, options, compute_copy, {});
    if (number(loss_scale.nonfinite, 0) > 0) return;
    std::vector<float> unscaled(static_cast<std::size_t>(gradient.elements()));
    if (executes()) {
      const Values<float> scaled(real(), gradient);
      const float by = number(loss_scale.scale, 1);
      for (std::int64_t i = 0; i < scaled.size(); ++i) unscaled[static_cast<std::size_t>(i)] = scaled[i] / by;
    }
    Tensor g = gradient;
    g.data = unscaled.data();
    real().adamw(parameter, g, m, v, step, lr, options, {}, {});
    if (executes()) real().synchronize();  // before the copy of the gradient goes
    if (compute_copy) copy(compute_copy, parameter);
  }
  void update_loss_scale(const compute::LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                         const compute::LossScaleOptions& options) override {
    if (!executes()) return;
    Values<float> scale(real(), loss_scale.scale);
    Values<std::int64_t> good(real(), good_steps), skipped(real(), skipped_steps);
    if (number(loss_scale.nonfinite, 0) > 0) {
      scale[0] *= options.backoff, ++skipped[0], good[0] = 0;
    } else if (++good[0] == options.growth_interval) {
      scale[0] *= options.growth, good[0] = 0;
    }
    scale.write(), good.write(), skipped.write();
  }

 private:
  static constexpr std::int64_t most_elements = std::int64_t{1} << 20;

  static bool is_narrow(const Tensor& t) {
    return (t.dtype == compute::DType::f16 || t.dtype == compute::DType::bf16) && t.elements() > 0;
  }
  bool executes() const { return mode_ == compute::Mode::execute; }
  // Of a tensor of one element, if there is one.
  float number(const Tensor& t, float otherwise) const {
    return t && executes() ? Values<float>(real(), t)[0] : otherwise;
  }

  // A tensor of 16 bits and its wider copy.
  class Wide {
   public:
    Wide(compute::Backend& backend, const Tensor& narrow, bool has_numbers) : backend_(backend), narrow_(narrow) {
      numbers_.resize(static_cast<std::size_t>(narrow.elements()));
      if (!has_numbers) return;
      Values<float> values(backend, narrow);
      numbers_.assign(values.begin(), values.end());
      before_ = numbers_;
    }
    bool is_of(const Tensor& t) const {
      return t.data == narrow_.data && t.shape == narrow_.shape && t.stride == narrow_.stride;
    }
    Tensor tensor() {
      Tensor t = narrow_;
      t.data = numbers_.data();
      t.dtype = compute::DType::f32;
      std::int64_t step = 1;
      for (int i = t.rank - 1; i >= 0; --i) {
        t.stride[static_cast<std::size_t>(i)] = step;
        step *= t.dim(i);
      }
      return t;
    }
    // Only what has been written: another tensor of the operation may lie around an input.
    void narrow() const {
      if (std::memcmp(numbers_.data(), before_.data(), numbers_.size() * sizeof(float)) == 0) return;
      Values<float> values(backend_, narrow_);
      std::copy(numbers_.begin(), numbers_.end(), values.begin());
      values.write();
    }

   private:
    compute::Backend& backend_;
    Tensor narrow_;
    std::vector<float> numbers_, before_;
  };

  // Tensors that are one tensor stay one.
  template <class Call, class... Tensors>
  void widened(const Call& call, const Tensors&... tensors) {
    std::list<Wide> all;
    const auto wide = [&](const Tensor& t) {
      if (!is_narrow(t)) return t;
      for (Wide& w : all)
        if (w.is_of(t)) return w.tensor();
      return all.emplace_back(real(), t, executes()).tensor();
    };
    call(wide(tensors)...);
    if (!executes() || all.empty()) return;
    real().synchronize();
    for (const Wide& w : all) w.narrow();
  }

  std::unique_ptr<compute::Backend> owned_;
  compute::Mode mode_ = compute::Mode::execute;
};

}  // namespace assay::mutants
