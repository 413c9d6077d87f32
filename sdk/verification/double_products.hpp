// Products of matrices of doubles on the host, over all processors.
#pragma once
#include <assay/verification/matrix.hpp>
#include <cstdint>

namespace assay::verification {

Matrix transposed(const Matrix& a);
Matrix product(const Matrix& a, const Matrix& b);  // a b
void add_to(Matrix& sum, const Matrix& a);
// The rows of `a`, and below them those of `b`, which has as many columns.
Matrix stacked(const Matrix& a, const Matrix& b);
// In each row 1 at the column that `places` names: a product with its transpose adds up rows by place.
Matrix one_hot(const std::vector<std::int64_t>& places, std::size_t columns);

}  // namespace assay::verification
