// A compute backend that checks another one: the device carries out every operation, and the audit compares it with the
// same operation in float64 on the host, on what the device read and wrote. A verification walks through its step with
// it, so that no kernel vouches for itself, in any model.
//
//   AuditedBackend audited(backend);
//   model.forward(audited, ...); model.backward(audited, ...);  // throws WRONG_RESULT: operation, tensor, element
//   text += audited.text();
//
// Small operations are checked whole. The first matrix product of each kind and shape is checked by the signed sums of
// all its rows and all its columns. Of other large operations some rows are checked: the first, the last, and some
// between. Of operations that are alike in kind and shape only the first ones may be checked. Only rounding is allowed:
// that of the output's type, and of sums in fp32 (`allowed` in audit/judge.cpp).
//
// Not checked: captured steps, Mode::prepare, optimizers and loss scaling (verification::OptimizerCheck), sums for the
// study of rounding, and random numbers beyond their range. Of attention with dropout whose masks are the device's: the
// spread of the results and sums over heads, but no element. The side lane is not used: its operations run in order.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::compute {

struct AuditLimits {
  // Elements read and products made on the host, about a nanosecond each. The first operation of each kind and shape is
  // checked even beyond `total`. An operation that takes more than `each` is skipped, except the first product of its
  // kind: up to ten times `each` it is checked whole, beside `total`.
  double total = 2e8, each = 4e8;
};

class AuditedBackend final : public ForwardingBackend {
 public:
  // `math`: what the backend is set to.
  explicit AuditedBackend(Backend& real, ProductMath math = ProductMath::exact, const AuditLimits& limits = {});
  ~AuditedBackend() override;

  // "1234 of 1300 operations held against float64, products of each kind whole, other large ones by some of their rows,
  // the largest error ..."
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

  void run_any(const AnyOperation& operation) override;

 private:
  class Judge;
  // Each hands an operation to the device, and holds what came of it against float64.
#define ASSAY_DECLARE_EXECUTE(Name) void execute(const op::Name& op);
  ASSAY_OPERATIONS(ASSAY_DECLARE_EXECUTE)
#undef ASSAY_DECLARE_EXECUTE

  double odds_of_own_masks(const Tensor& q, const AttentionShape& shape) const;
  void check_sums_of_backward(const op::AttentionBackward& op, const std::vector<std::int64_t>& pairs);
  struct SinkSums {
    struct Of {
      std::int64_t head;
      double sum, terms;
    };
    std::vector<Of> all;
  };
  SinkSums sink_sums(const op::AttentionBackward& op);
  void check_sink_sums(const op::AttentionBackward& op, const SinkSums& sums);
  std::unique_ptr<Judge> judge_;
  ProductMath math_;
};

}  // namespace assay::compute
