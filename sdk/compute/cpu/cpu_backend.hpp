// The CPU backend: oneDNN for matrix products, our own loops (OpenMP over rows, vectorised inside) for the rest.
// The operations are spread over backend_*.cpp by theme; each checks its arguments, then calls a kernel of kernels/ for
// the instruction set found at start.
#pragma once
#include <assay/compute/backend.hpp>

#include "common/operation_checks.hpp"
#include "kernels/dropout.hpp"
#include "kernels/isa.hpp"

namespace assay::cpu {

// The interface and the shared checks, by their own names.
using namespace compute;

// What a kernel is told of a checked dropout. Reads the step: while executing alone.
inline DropoutArgs dropout_args(const DropoutRule& rule, const Dropout& d) {
  DropoutArgs args{rule.drop_below, rule.factor, d.seed, d.stream, 0};
  if (d.probability > 0.0F) args.step = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(d.step.data));
  return args;
}

// Kernels are kept in tables by data type.
inline std::size_t index_of(DType t) { return static_cast<std::size_t>(t); }

class MatmulCache;  // oneDNN primitives by shape, see matmul.hpp

class CpuBackend final : public compute::Backend {
 public:
  CpuBackend();
  ~CpuBackend() override;

  const char* kind() const override { return "cpu"; }
  void set_mode(Mode) override;
  void synchronize() override {}  // every call has done its work when it returns
  std::size_t workspace_bytes() const override;
  void set_workspace(void* address, std::size_t bytes) override;
  std::vector<PrimitiveInfo> primitives() const override;
  void set_product_math(ProductMath) override;
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }

  // backend_data.cpp
  void upload(const Tensor& to, const void* host_source) override;
  void download(void* host_target, const Tensor& from) override;
  void fill(const Tensor& x, double value) override;
  void copy(const Tensor& to, const Tensor& from) override;
  void random_normal(const Tensor& x, std::uint64_t seed, std::uint64_t stream, float mean, float std) override;
  void random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                       std::int64_t high) override;
  void embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) override;
  void embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) override;
  void rotary_table(const Tensor& cos, const Tensor& sin, double theta) override;
  void rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) override;

  // backend_feed.cpp
  std::unique_ptr<Feed> open_feed(std::size_t slots, std::size_t bytes_per_slot, void* device_memory) override;

  // matmul.cpp
  void matmul(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options) override;

  // backend_elementwise.cpp
  void add(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void scale(const Tensor& x, float factor, const Tensor& out) override;
  void activation_forward(Activation, const Tensor& x, const Tensor& y) override;
  void activation_backward(Activation, const Tensor& x, const Tensor& dy, const Tensor& dx) override;
  void bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) override;
  void bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) override;
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) override;
  void swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate, const Tensor& dup,
                       const Tensor& h) override;
  void dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
               const Tensor& step) override;
  void bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y, const Dropout& dropout) override;
  void relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) override;

  // backend_norm.cpp
  void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd, float eps) override;
  void add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                            const Tensor& y, const Tensor& rstd, float eps) override;
  void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                         const Tensor& residual, const Tensor& dx, const Tensor& dweight, bool accumulate_dweight,
                         const Tensor& y) override;
  void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                          const Tensor& mean, const Tensor& rstd, float eps) override;
  void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                           const Tensor& dbias, bool accumulate_dweight) override;
  void dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                      const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                      const Tensor& norm_bias, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                                      float eps) override;
  void dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const Dropout& dropout, const Tensor& dsum, const Tensor& dx,
                                       const Tensor& dbias, const Tensor& dweight, const Tensor& dnorm_bias,
                                       bool accumulate) override;

  // backend_attention.cpp
  void softmax_forward(const Tensor& x, const Tensor& y, float scale, bool causal) override;
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float scale) override;
  void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                         const AttentionShape& shape) override;
  void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                          const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                          const AttentionShape& shape) override;

  // ordered_sum.cpp
  void ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) override;
  void ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) override;

  // backend_training.cpp: loss, reductions, optimizers
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                             const Tensor& lse) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                              const Tensor& loss_scale, const Tensor& dlogits) override;
  void cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                              const Tensor& loss_scale) override;
  void sum(const Tensor& x, const Tensor& out, float factor) override;
  void sum_of_squares(const Tensor& x, const Tensor& out) override;
  void max_abs(const Tensor& x, const Tensor& out) override;
  void count_nonfinite(const Tensor& x, const Tensor& out) override;
  void advance(const Tensor& step, const LossScale& loss_scale) override;
  void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v, const Tensor& step,
             const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
             const LossScale& loss_scale) override;
  void sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
           const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
           const LossScale& loss_scale) override;
  void update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                         const LossScaleOptions& options) override;

  bool preparing() const { return mode_ == Mode::prepare; }

 private:
  // Scratch for the operations that need it: asks for `bytes` while preparing, hands them out while executing. One
  // region serves all operations, since none outlives its call.
  void* scratch(std::size_t bytes);

  // A product of bf16 where oneDNN has none for this processor: by fp32 copies of its operands.
  void matmul_widened(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options);

  Isa isa_;
  Mode mode_ = Mode::execute;
  std::size_t workspace_needed_ = 0;
  void* workspace_ = nullptr;
  std::size_t workspace_size_ = 0;
  std::unique_ptr<MatmulCache> matmuls_;
};

}  // namespace assay::cpu
