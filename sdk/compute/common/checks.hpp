// Argument checks that the backends share. Compiled into each backend with ASSAY_DEVICE_LABEL, what its messages call
// the device: "CPU", "GPU".
#pragma once
#include <assay/compute/backend.hpp>

#include <initializer_list>
#include <string>

#include "common/kernel_shapes.hpp"

namespace assay::compute {

// All throw assay::Error(ASSAY_UNSUPPORTED or ASSAY_INVALID_ARGUMENT) that names the operation.
[[noreturn]] void reject(const char* operation, const std::string& what);
void require_dtype(const char* operation, const Tensor& t, std::initializer_list<DType> allowed);
void require_same_shape(const char* operation, const Tensor& a, const Tensor& b);
void require_contiguous(const char* operation, const Tensor& t);
void require_rank(const char* operation, const Tensor& t, int rank);
void require_like(const char* operation, const Tensor& first, const Tensor& other);  // contiguous, its type and shape

// `count` elements; `of_what` says which, in the message.
void require_count(const char* operation, const char* name, const Tensor& t, std::int64_t count, const char* of_what);

// ---- of normalisations: x is [rows, columns] ----
void require_columns(const char* operation, const char* name, const Tensor& t, std::int64_t columns);
float* require_statistic(const char* operation, const char* name, const Tensor& t, std::int64_t rows);
void require_gradient(const char* operation, const char* name, const Tensor& x, const Tensor& t);

// A tensor as rows: all dimensions but the last, flattened. The last is contiguous, and one stride leads from row to
// row; anything else is rejected.
struct Rows {
  std::int64_t count, width, stride;  // stride in elements
};
Rows as_rows(const char* operation, const Tensor& t);

std::string shape_text(const Tensor& t);  // "fp32 [2, 3]"

// The fewest dimensions that describe both walks, right-aligned: neighbours that both tensors walk in one stride merge.
CopyShape copy_shape(const Tensor& to, const Tensor& from);

}  // namespace assay::compute
