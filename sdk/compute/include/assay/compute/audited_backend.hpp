// A compute backend that checks another one: every operation is carried out by the device, and held against the same
// operation in float64 on the host, on what the device read and wrote. A verification walks through its step with it,
// so that no kernel vouches for itself, whatever model it is part of.
//
//   AuditedBackend audited(backend);
//   model.forward(audited, ...); model.backward(audited, ...);  // throws WRONG_RESULT: operation, tensor, element
//   text += audited.text();
//
// Small operations are looked at whole. Of large ones it looks at rows: the first, the last, and some between; of a
// matrix product's rows, all columns, by their sum with random signs. Of operations that are alike in kind and shape it
// may look at the first ones alone. Rounding is all that may be between: that of the
// output's type, and of sums in fp32 (`allowed` in audit/judge.cpp).
//
// Not looked at: captured steps, what is done in Mode::prepare, optimizers and loss scaling (train::OptimizerCheck),
// sums for the study of rounding, and random numbers beyond their range. Of attention with dropout where the device's
// masks are its own: the spread of the results and sums over heads, but no element. The side lane is not used: what a
// workload sends there is done in order.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::compute {

struct AuditLimits {
  // Elements read and products made on the host, about a nanosecond each. The first operation of each kind and shape
  // is looked at beyond `total` too; one that takes more than `each` is never.
  double total = 2e8, each = 4e8;
};

class AuditedBackend final : public ForwardingBackend {
 public:
  // `math`: what the backend is set to.
  explicit AuditedBackend(Backend& real, ProductMath math = ProductMath::exact, const AuditLimits& limits = {});
  ~AuditedBackend() override;

  // "1234 of 1300 operations held against float64, large ones by some of their rows, the largest error ..."
  std::string text() const;
  bool looked_at_all() const;  // whether each kind and shape of operation that it knows was looked at
  // Both, for a verification: in part where of a kind and shape nothing was looked at.
  Verified verified() const { return {text() + "; ", !looked_at_all()}; }

  void set_mode(Mode) override;
  void set_product_math(ProductMath math) override {
    math_ = math;
    real().set_product_math(math);
  }
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override;
  void begin_side() override {}
  void end_side() override {}
  void join_side() override {}

  void fill(const Tensor&, double) override;
  void copy(const Tensor&, const Tensor&) override;
  void random_integers(const Tensor&, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t) override;
  void matmul(const Tensor&, const Tensor&, const Tensor&, const MatmulOptions&) override;
  void add(const Tensor&, const Tensor&, const Tensor&) override;
  void multiply(const Tensor&, const Tensor&, const Tensor&) override;
  void scale(const Tensor&, float, const Tensor&) override;
  void activation_forward(Activation, const Tensor&, const Tensor&) override;
  void activation_backward(Activation, const Tensor&, const Tensor&, const Tensor&) override;
  void bias_add(const Tensor&, const Tensor&, const Tensor&) override;
  void bias_backward(const Tensor&, const Tensor&, bool) override;
  void swiglu_forward(const Tensor&, const Tensor&, const Tensor&) override;
  void swiglu_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&) override;
  void dropout(const Tensor&, const Tensor&, float, std::uint64_t, std::uint64_t, const Tensor&) override;
  void bias_relu_dropout_forward(const Tensor&, const Tensor&, const Tensor&, const Dropout&) override;
  void relu_dropout_backward(const Tensor&, const Tensor&, const Tensor&, float) override;
  void embedding_forward(const Tensor&, const Tensor&, const Tensor&) override;
  void embedding_backward(const Tensor&, const Tensor&, const Tensor&, bool) override;
  void rotary_table(const Tensor&, const Tensor&, double) override;
  void rotary(const Tensor&, const Tensor&, const Tensor&, bool) override;
  void rms_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, float) override;
  void add_rms_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                            float) override;
  void rms_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         const Tensor&, bool, const Tensor&) override;
  void layer_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                          float) override;
  void layer_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                           const Tensor&, const Tensor&, const Tensor&, bool) override;
  void dropout_add_layer_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Dropout&, const Tensor&,
                                      const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                      float) override;
  void dropout_add_layer_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                       const Dropout&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                       const Tensor&, bool) override;
  void softmax_forward(const Tensor&, const Tensor&, float, bool) override;
  void softmax_backward(const Tensor&, const Tensor&, const Tensor&, float) override;
  void attention_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         const AttentionShape&) override;
  void attention_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&, const Tensor&, const Tensor&, const AttentionShape&) override;
  void cross_entropy_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override;
  void cross_entropy_backward(const Tensor&, const Tensor&, const Tensor&, float, const Tensor&,
                              const Tensor&) override;
  void cross_entropy_in_place(const Tensor&, const Tensor&, const Tensor&, float, const Tensor&) override;
  void sum(const Tensor&, const Tensor&, float) override;
  void sum_of_squares(const Tensor&, const Tensor&) override;
  void max_abs(const Tensor&, const Tensor&) override;
  void count_nonfinite(const Tensor&, const Tensor&) override;

 private:
  class Judge;
  double odds_of_own_masks(const Tensor& q, const AttentionShape& shape) const;
  void check_sums_of_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& dout,
                              const Tensor& dq, const Tensor& dk, const Tensor& dv,
                              const std::vector<std::int64_t>& pairs, const std::function<void()>& call);
  std::unique_ptr<Judge> judge_;
  ProductMath math_;
};

}  // namespace assay::compute
