// What a kernel needs to drop elements on its way.
#pragma once
#include <stdint.h>

namespace assay::cpu {

// Element i is kept when word i mod 4 of block i / 4 is at least `drop_below`, and then multiplied by `factor`; the key
// is the first two words of block `step` of (seed, stream), its stream the last two.
struct DropoutArgs {
  uint32_t drop_below;  // 0: nothing is dropped, and the rest is not looked at
  float factor;
  uint64_t seed, stream, step;
};

}  // namespace assay::cpu
