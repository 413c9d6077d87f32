#include "assay/verification/reference_parameters.hpp"

#include <algorithm>
#include <utility>

#include "double_products.hpp"

namespace assay::verification {

using compute::Tensor;

ParametersOnHost::ParametersOnHost(const train::ParameterSet& set, const std::vector<std::vector<float>>& weights)
    : ReferenceParameters(set), weights_(weights) {
  for (const auto& w : weights) gradients_.emplace_back(w.size());
}

Matrix ParametersOnHost::weight(Id id, std::size_t first, std::size_t count) const {
  const std::size_t columns = columns_of(id);
  const auto begin = weights_[id].begin() + static_cast<std::ptrdiff_t>(first * columns);
  if (count == 0) count = rows_of(id) - first;
  return {count, columns, std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count * columns))};
}

Matrix ParametersOnHost::project(const Matrix& x, Id id, std::size_t first, std::size_t count) {
  return product(x, transposed(weight(id, first, count)));
}

Matrix ParametersOnHost::project_back(const Matrix& dy, Id id, std::size_t first, std::size_t count) {
  return product(dy, weight(id, first, count));
}

Matrix ParametersOnHost::rows(Id id, const std::vector<std::int64_t>& which) {
  Matrix rows(which.size(), columns_of(id));
  for (std::size_t r = 0; r < which.size(); ++r)
    std::copy_n(weights_[id].begin() + which[r] * static_cast<std::ptrdiff_t>(rows.columns), rows.columns, rows.row(r));
  return rows;
}

std::vector<double> ParametersOnHost::vector(Id id) { return {weights_[id].begin(), weights_[id].end()}; }

void ParametersOnHost::keep_product(Id id, const Matrix& a, const Matrix& b) {
  const Matrix gradient = product(transposed(a), b);
  std::copy(gradient.values.begin(), gradient.values.end(), gradients_[id].begin());
}

void ParametersOnHost::keep_products(Id id, const std::vector<std::pair<Matrix, Matrix>>& by_matrix) {
  auto at = gradients_[id].begin();
  for (const auto& [a, b] : by_matrix) {
    const Matrix gradient = product(transposed(a), b);
    at = std::copy(gradient.values.begin(), gradient.values.end(), at);
  }
}

void ParametersOnHost::keep(Id id, const std::vector<double>& gradient) {
  gradients_[id].assign(gradient.begin(), gradient.end());
}

ParametersInPlace::ParametersInPlace(compute::Backend& backend, const train::ParameterSet& set, std::vector<Id> used,
                                     std::vector<bool> reads_master, float factor)
    : ReferenceParameters(set),
      inspector_(compute::inspector_of(backend)),
      used_(std::move(used)),
      reads_master_(std::move(reads_master)),
      factor_(factor),
      differences_(set.all().size()) {}

Tensor ParametersInPlace::weight(Id id, std::size_t first, std::size_t count) const {
  const Tensor stored = reads_master_[id] ? set().value(id) : set().compute(id);
  const Tensor all = stored.rank < 3 ? stored : stored.view({stored.dim(0) * stored.dim(1), stored.dim(2)});
  if (count == 0) count = static_cast<std::size_t>(all.dim(0)) - first;
  return all.slice(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
}

Matrix ParametersInPlace::project(const Matrix& x, Id id, std::size_t first, std::size_t count) {
  const Tensor w = weight(id, first, count);
  return {x.rows, static_cast<std::size_t>(w.dim(0)),
          inspector_->product(x.values, static_cast<std::int64_t>(x.rows), w)};
}

Matrix ParametersInPlace::project_back(const Matrix& dy, Id id, std::size_t first, std::size_t count) {
  const Tensor w = weight(id, first, count);
  return {dy.rows, static_cast<std::size_t>(w.dim(1)),
          inspector_->product(dy.values, static_cast<std::int64_t>(dy.rows), w.transposed(0, 1))};
}

Matrix ParametersInPlace::rows(Id id, const std::vector<std::int64_t>& which) {
  std::vector<compute::RowSegment> segments;
  const auto columns = static_cast<std::int64_t>(columns_of(id));
  for (const std::int64_t row : which) segments.push_back({row, 0, columns});
  return {which.size(), columns_of(id), inspector_->read(weight(id, 0, 0), segments)};
}

std::vector<double> ParametersInPlace::vector(Id id) { return inspector_->read(weight(id, 0, 0)); }

void ParametersInPlace::keep_product(Id id, const Matrix& a, const Matrix& b) {
  if (!set().all_gradients()) return;
  differences_[id] = BlockDifference(inspector_->difference_from_product(set().gradient(id), factor_, a.values,
                                                                         b.values, static_cast<std::int64_t>(a.rows)));
}

void ParametersInPlace::keep_products(Id id, const std::vector<std::pair<Matrix, Matrix>>& by_matrix) {
  if (!set().all_gradients()) return;
  const Tensor gradient = set().gradient(id);
  BlockDifference difference;
  for (std::size_t i = 0; i < by_matrix.size(); ++i) {
    const auto& [a, b] = by_matrix[i];
    const Tensor of_one = gradient.slice(0, static_cast<std::int64_t>(i), 1).view({gradient.dim(1), gradient.dim(2)});
    const Matrix none_a(1, a.columns), none_b(1, b.columns);
    difference.add(inspector_->difference_from_product(of_one, factor_, a.rows > 0 ? a.values : none_a.values,
                                                       a.rows > 0 ? b.values : none_b.values,
                                                       static_cast<std::int64_t>(std::max<std::size_t>(1, a.rows))));
  }
  differences_[id] = difference;
}

void ParametersInPlace::keep(Id id, const std::vector<double>& gradient) {
  if (!set().all_gradients()) return;
  std::vector<float> found;
  for (const double g : inspector_->read(set().gradient(id))) found.push_back(static_cast<float>(g) * factor_);
  differences_[id] = BlockDifference(found, {gradient.begin(), gradient.end()});
}

std::vector<BlockDifference> ParametersInPlace::differences() const {
  std::vector<BlockDifference> all;
  if (!set().all_gradients()) return all;
  for (const Id id : used_)
    if (!differences_[id])
      throw Error(ASSAY_INTERNAL, "the float64 reference has no gradient by " + set().all()[id].name);
  for (const std::optional<BlockDifference>& difference : differences_)
    all.push_back(difference.value_or(BlockDifference()));
  return all;
}

}  // namespace assay::verification
