// Sums and dot products on the host: exactly, and as a device that rounds every partial result must get them.
#pragma once
#include <assay/compute/backend.hpp>

#include <span>

namespace mixed_precision {

// The sum without any rounding but the last one, to double (Shewchuk's non-overlapping partial sums).
double exact_sum(std::span<const double> terms);

// Rounds to nearest, ties to even; exact for values that the format (fp32, bf16, fp16) holds.
float round_to(float value, assay::compute::DType dtype);

// Throws WRONG_RESULT unless each stored number is the given one, rounded to the format: "input 12 is stored as ...",
// with `what` = "input".
void check_stored(std::span<const float> given, std::span<const float> stored, assay::compute::DType dtype,
                  const char* what);

// The distance between neighbouring numbers of the format at `value`.
double ulp_at(double value, assay::compute::DType dtype);

// compute::Backend::ordered_sum must return this for these terms, to the bit. For a dot product the terms are the
// products, each rounded to the accumulator's format.
float ordered_sum(std::span<const float> terms, const assay::compute::SumOptions& options);

}  // namespace mixed_precision
