#include "algorithm.hpp"

namespace attention {

Operands::Operands(const Problem& p)
    : q(ASSAY_MEMORY_DATA, "q", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      k(ASSAY_MEMORY_DATA, "k", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      v(ASSAY_MEMORY_DATA, "v", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      out(ASSAY_MEMORY_ACTIVATIONS, "out", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      dout(ASSAY_MEMORY_DATA, "dout", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      dq(ASSAY_MEMORY_GRADIENTS, "dq", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      dk(ASSAY_MEMORY_GRADIENTS, "dk", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}),
      dv(ASSAY_MEMORY_GRADIENTS, "dv", p.dtype, {p.batch, p.heads, p.seq, p.head_dim}) {}

}  // namespace attention
