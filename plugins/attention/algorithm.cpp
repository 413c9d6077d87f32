#include "algorithm.hpp"

namespace attention {
namespace {

// With projections all operands are results on the way, which a backward leaves behind.
Slot operand(const Problem& p, const char* name, assay_memory_kind alone, std::int64_t columns) {
  if (!p.projections) return {alone, name, p.dtype, {p.batch, p.heads, p.seq, columns}};
  Slot slot(ASSAY_MEMORY_ACTIVATIONS, name, p.dtype, {p.batch, p.seq, p.heads, columns});
  slot.exchange_middle();
  return slot;
}

}  // namespace

Operands::Operands(const Problem& p)
    : q(operand(p, "q", ASSAY_MEMORY_DATA, p.head_dim)),
      k(operand(p, "k", ASSAY_MEMORY_DATA, p.head_dim)),
      v(operand(p, "v", ASSAY_MEMORY_DATA, p.value_columns())),
      out(operand(p, "out", ASSAY_MEMORY_ACTIVATIONS, p.value_columns())),
      dout(operand(p, "dout", ASSAY_MEMORY_DATA, p.value_columns())),
      dq(operand(p, "dq", ASSAY_MEMORY_GRADIENTS, p.head_dim)),
      dk(operand(p, "dk", ASSAY_MEMORY_GRADIENTS, p.head_dim)),
      dv(operand(p, "dv", ASSAY_MEMORY_GRADIENTS, p.value_columns())) {}

}  // namespace attention
