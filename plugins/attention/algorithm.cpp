#include "algorithm.hpp"

namespace attention {

using assay::compute::DType;
using assay::compute::Tensor;

namespace {

// With projections all operands are results on the way, which a backward leaves behind.
Slot operand(const Problem& p, const char* name, assay_memory_kind alone, std::int64_t columns) {
  if (!p.is_by_token()) return {alone, name, p.dtype, {p.batch, p.heads, p.seq, columns}};
  Slot slot(p.projections ? ASSAY_MEMORY_ACTIVATIONS : alone, name, p.dtype, {p.batch, p.seq, p.heads, columns});
  slot.exchange_middle();
  return slot;
}

}  // namespace

DocumentSlots::DocumentSlots(const Problem& p)
    : places_(p.documents, p.batch),
      sizes_(p.documents, p.batch, p.window),
      first_keys_(ASSAY_MEMORY_DATA, "first keys", DType::i32, {p.batch, p.seq}),
      starts_(ASSAY_MEMORY_DATA, "starts of documents", DType::i32,
              {static_cast<std::int64_t>(places_.starts.size())}) {}

Slots DocumentSlots::slots() { return places_.first_keys.empty() ? Slots{} : Slots{&first_keys_, &starts_}; }

void DocumentSlots::initialize(assay::compute::Backend& b) const {
  if (places_.first_keys.empty()) return;
  b.upload(first_keys_, places_.first_keys.data());
  b.upload(starts_, places_.starts.data());
}

assay::compute::PackedDocuments DocumentSlots::get() const {
  if (places_.first_keys.empty()) return {};
  return sizes_.packed(first_keys_, starts_);
}

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
