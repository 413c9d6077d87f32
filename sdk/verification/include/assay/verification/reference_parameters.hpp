// Where a float64 reference of a model finds the parameters, and where it leaves their gradients: whole on the host, or
// in the device's memory, where no large matrix is moved.
#pragma once
#include <assay/compute/inspector.hpp>
#include <assay/train/parameters.hpp>
#include <assay/verification/block_difference.hpp>
#include <assay/verification/matrix.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace assay::verification {

class ReferenceParameters {
 public:
  using Id = train::ParameterSet::Id;

  explicit ReferenceParameters(const train::ParameterSet& set) : set_(set) {}
  ReferenceParameters(const ReferenceParameters&) = delete;
  ReferenceParameters& operator=(const ReferenceParameters&) = delete;
  virtual ~ReferenceParameters() = default;

  // Rows [first, first + count) of a matrix W; all of them from `first` on, where count is 0.
  virtual Matrix project(const Matrix& x, Id id, std::size_t first = 0, std::size_t count = 0) = 0;        // x W'
  virtual Matrix project_back(const Matrix& dy, Id id, std::size_t first = 0, std::size_t count = 0) = 0;  // dy W
  virtual Matrix rows(Id id, const std::vector<std::int64_t>& which) = 0;
  virtual std::vector<double> vector(Id id) = 0;  // all elements

  // The gradient of a matrix is a' b.
  virtual void keep_product(Id id, const Matrix& a, const Matrix& b) = 0;
  // Of a stack of matrices, which reads as one with all their rows: of each matrix a' b; without rows it is 0.
  virtual void keep_products(Id id, const std::vector<std::pair<Matrix, Matrix>>& by_matrix) = 0;
  virtual void keep(Id id, const std::vector<double>& gradient) = 0;

  std::size_t rows_of(Id id) const {
    const train::Parameter& p = set_.all()[id];
    return static_cast<std::size_t>(p.dims.size() < 2 ? p.dims[0] : p.elements() / p.dims.back());
  }

 protected:
  const train::ParameterSet& set() const { return set_; }
  std::size_t columns_of(Id id) const { return static_cast<std::size_t>(set_.all()[id].dims.back()); }

 private:
  const train::ParameterSet& set_;
};

// `weights` by parameter, in the order of the set; so are the gradients, rounded once, at the end.
class ParametersOnHost final : public ReferenceParameters {
 public:
  ParametersOnHost(const train::ParameterSet& set, const std::vector<std::vector<float>>& weights);

  Matrix project(const Matrix& x, Id id, std::size_t first, std::size_t count) override;
  Matrix project_back(const Matrix& dy, Id id, std::size_t first, std::size_t count) override;
  Matrix rows(Id id, const std::vector<std::int64_t>& which) override;
  std::vector<double> vector(Id id) override;
  void keep_product(Id id, const Matrix& a, const Matrix& b) override;
  void keep_products(Id id, const std::vector<std::pair<Matrix, Matrix>>& by_matrix) override;
  void keep(Id id, const std::vector<double>& gradient) override;

  std::vector<std::vector<float>> take_gradients() { return std::move(gradients_); }

 private:
  Matrix weight(Id id, std::size_t first, std::size_t count) const;
  const std::vector<std::vector<float>>& weights_;
  std::vector<std::vector<float>> gradients_;
};

// Holds the gradients that are in the arena against those of the reference, and keeps the differences by parameter.
// Blocks.
class ParametersInPlace final : public ReferenceParameters {
 public:
  // `used`: the parameters of the model that the reference computes. `reads_master`: by parameter, whether operations
  // read it as the optimizer has it, and not in the activations' format. `factor`: what gradients in the arena are
  // multiplied by.
  ParametersInPlace(compute::Backend& backend, const train::ParameterSet& set, std::vector<Id> used,
                    std::vector<bool> reads_master, float factor);

  Matrix project(const Matrix& x, Id id, std::size_t first, std::size_t count) override;
  Matrix project_back(const Matrix& dy, Id id, std::size_t first, std::size_t count) override;
  Matrix rows(Id id, const std::vector<std::int64_t>& which) override;
  std::vector<double> vector(Id id) override;
  void keep_product(Id id, const Matrix& a, const Matrix& b) override;
  void keep_products(Id id, const std::vector<std::pair<Matrix, Matrix>>& by_matrix) override;
  void keep(Id id, const std::vector<double>& gradient) override;

  // Empty for parameters that are not used, and for a forward alone. Throws INTERNAL if the reference has given no
  // gradient by a parameter that is used.
  std::vector<BlockDifference> differences() const;

 private:
  compute::Tensor weight(Id id, std::size_t first, std::size_t count) const;
  std::shared_ptr<compute::Inspector> inspector_;
  std::vector<Id> used_;
  std::vector<bool> reads_master_;
  float factor_;
  std::vector<std::optional<BlockDifference>> differences_;
};

}  // namespace assay::verification
