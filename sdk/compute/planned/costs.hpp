// What an operation costs at least: floating-point operations in the products and attentions, and bytes of its tensors,
// each read or written once. What lies in a cache may cost less.
#pragma once
#include <assay/abi.h>
#include <assay/compute/operations.hpp>

namespace assay::planned {

// Throws nothing; the operation has been checked.
assay_planned_operation cost_of(const compute::AnyOperation& operation, compute::ProductMath math);

}  // namespace assay::planned
