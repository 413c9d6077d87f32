// Making and moving data.
#pragma once
#include <assay/compute/operation_fields.hpp>

#include <cstdint>

namespace assay::compute::op {

struct Fill {
  Out x;  // of any type, contiguous
  double value;
  ASSAY_OPERATION("fill", x)
};

// Honours strides; converts between fp32, bf16 and fp16.
struct Copy {
  Out to;
  In from;  // of the shape of `to`
  ASSAY_OPERATION("copy", to, from)
};

// Counter-based (Philox 4x32-10): element i depends only on (seed, stream, i), whatever the number of threads.
struct RandomNormal {
  Out x;  // T, contiguous
  std::uint64_t seed, stream;
  float mean, std;
  ASSAY_OPERATION("random_normal", x)
};
struct RandomIntegers {
  Out x;  // i64, contiguous
  std::uint64_t seed, stream;
  std::int64_t low, high;  // in [low, high)
  ASSAY_OPERATION("random_integers", x)
};

}  // namespace assay::compute::op

// clang-format off
#define ASSAY_OPERATIONS_OF_DATA(X) \
  X(Fill) X(Copy) X(RandomNormal) X(RandomIntegers)
// clang-format on
