// check = "matrix_product": compute. A step multiplies two square matrices of integers some times.
//
// The products are added to one result with signs that alternate: it is a b after an odd number of products, and 0
// after an even one. So an error of any product of the run stays in the result, which is checked once, at the end.
#pragma once
#include <assay/compute/counted_backend.hpp>
#include <assay/compute/workspace.hpp>
#include <memory>

#include "check.hpp"
#include "integer_product.hpp"
#include "settings.hpp"

namespace node_check {

class MatrixProduct final : public Check {
 public:
  MatrixProduct(const assay::Host& host, const Settings& settings);
  void setup(const Launch& launch) override;
  void run(const Launch& launch) override;
  assay::Account account(const Launch& launch) override;
  std::string verify(const Launch& launch) override;
  assay::Work work() const override;

 private:
  void write(const assay::compute::Tensor& to, const IntegerMatrix& from, int sign) const;
  void enqueue_product();
  Findings compare();
  void spoil() const;

  assay::Host host_;
  Settings settings_;
  assay::compute::DType dtype_;
  IntegerProduct exact_;
  std::unique_ptr<assay::compute::CountedBackend> backend_;
  assay::DeviceMemory factors_memory_, result_memory_;
  assay::compute::Workspace workspace_;
  // -a is a separate matrix: both signs are the same kernel, and take the same time.
  assay::compute::Tensor a_, minus_a_, b_, c_;
  std::uint64_t products_ = 0;
};

}  // namespace node_check
