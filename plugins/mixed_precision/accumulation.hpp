// study = "accumulation": one sum, dot product or all-reduce on the device, in a stated format and order, against its
// exact value.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/compute/workspace.hpp>

#include <memory>
#include <string>
#include <vector>

#include "settings.hpp"
#include "study.hpp"

namespace mixed_precision {

class Accumulation final : public Study {
 public:
  explicit Accumulation(const assay::Case& c);  // throws INVALID_ARGUMENT for what does not go together
  void setup(const Launch& launch) override;
  void run(const Launch&) override { enqueue(); }
  void finish(const Launch& launch) override;
  std::string verify(const Launch& launch) override;
  assay::Work work() const override;

 private:
  void check() const;
  bool of_products() const { return operation_ == Operation::dot || operation_ == Operation::matmul; }
  bool of_ranks() const { return operation_ == Operation::all_reduce; }
  std::int64_t first_of(std::int64_t rank) const { return terms_ * rank / ranks_; }

  void take_memory();
  void make_terms();
  void enqueue() const;
  void enqueue_sum() const;
  void enqueue_ranks() const;

  double exact(const std::vector<double>& terms) const;
  float expected() const;  // the operation must return this, to the bit; not for matmul
  void check_product(double result) const;
  float download_result() const;

  assay::Host host_;
  std::uint64_t seed_;
  Operation operation_;
  Order order_;
  Data data_;
  bool tf32_;
  assay::compute::DType terms_dtype_, stored_;
  bool stores_ = false;  // a finished sum in `stored_`
  assay::compute::SumOptions options_;
  std::int64_t terms_, ranks_;
  double term_;

  std::unique_ptr<assay::compute::Backend> backend_;
  assay::DeviceMemory data_memory_;
  assay::compute::Workspace workspace_;
  // fp32 [n]: a scratch for what is converted; then the terms; the chunks' or the ranks' sums, those stored, those in
  // the order of a ring; the result of each ring; the product's result.
  assay::compute::Tensor scratch_, x_, partials_, stored_partials_, rotated_, results_, product_;
  std::vector<double> real_;    // the terms before they were stored
  std::vector<float> on_host_;  // as stored
};

}  // namespace mixed_precision
