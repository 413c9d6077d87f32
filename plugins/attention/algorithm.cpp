#include "algorithm.hpp"

namespace attention {
namespace {

// With projections all operands are results on the way, which a backward leaves behind.
Slot operand(const Problem& p, const char* name, assay_memory_kind alone) {
  if (!p.projections) return {alone, name, p.dtype, {p.batch, p.heads, p.seq, p.head_dim}};
  Slot slot(ASSAY_MEMORY_ACTIVATIONS, name, p.dtype, {p.batch, p.seq, p.heads, p.head_dim});
  slot.exchange_middle();
  return slot;
}

}  // namespace

Operands::Operands(const Problem& p)
    : q(operand(p, "q", ASSAY_MEMORY_DATA)),
      k(operand(p, "k", ASSAY_MEMORY_DATA)),
      v(operand(p, "v", ASSAY_MEMORY_DATA)),
      out(operand(p, "out", ASSAY_MEMORY_ACTIVATIONS)),
      dout(operand(p, "dout", ASSAY_MEMORY_DATA)),
      dq(operand(p, "dq", ASSAY_MEMORY_GRADIENTS)),
      dk(operand(p, "dk", ASSAY_MEMORY_GRADIENTS)),
      dv(operand(p, "dv", ASSAY_MEMORY_GRADIENTS)) {}

}  // namespace attention
