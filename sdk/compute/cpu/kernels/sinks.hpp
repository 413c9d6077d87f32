// Sinks of attention, or their gradients: a number for each head, fp32 or bf16.
#pragma once
#include <stdint.h>

namespace assay::cpu {

struct SinkVector {
  void* data;  // null: there are none
  bool bf16;
  explicit operator bool() const { return data; }
};

}  // namespace assay::cpu

#ifdef ASSAY_ISA
#include "math.hpp"

namespace assay::cpu::ASSAY_ISA {

ASSAY_INLINE float sink_of(const SinkVector& v, int64_t head) {
  return v.bf16 ? load(static_cast<const uint16_t*>(v.data) + head) : load(static_cast<const float*>(v.data) + head);
}
// Adds where `accumulate` says so.
ASSAY_INLINE void store_sink_gradient(const SinkVector& v, int64_t head, double sum, bool accumulate) {
  const float x = float(accumulate ? double(sink_of(v, head)) + sum : sum);
  v.bf16 ? store(static_cast<uint16_t*>(v.data) + head, x) : store(static_cast<float*>(v.data) + head, x);
}

}  // namespace assay::cpu::ASSAY_ISA
#endif
