#include <fmt/format.h>

#include "attention_plans.hpp"

namespace assay::cuda {

void AttentionKey::set_strides(AttentionOperand operand, const compute::Tensor& t) {
  Strides& s = strides[static_cast<std::size_t>(operand)];
  s.head = t.dim(2) > 1 ? t.step(2) : t.dim(3);
  s.time = t.dim(1) > 1 ? t.step(1) : t.dim(2) * s.head;
  s.batch = t.dim(0) > 1 ? t.step(0) : t.dim(1) * s.time;
}

std::string AttentionKey::text() const {
  const std::string of_keys = key_heads == heads ? "" : fmt::format(", {} of keys,", key_heads);
  const std::string of_values = value_depth == depth ? "" : fmt::format(" values {}", value_depth);
  return fmt::format(
      "{} {} {}x{} heads{} {}x{}x{}{}{}{}{}{}{}{}", backward ? "attention_backward" : "attention_forward",
      name_of(dtype), batch, heads, of_keys, queries, keys, depth, of_values, causal ? " causal" : "",
      window > 0 ? fmt::format(" window {}", window) : "", soft_cap > 0.0F ? fmt::format(" cap {}", soft_cap) : "",
      sinks ? " sinks" : "", dropout > 0.0F ? fmt::format(" dropout {}", dropout) : "",
      documents > 0 ? fmt::format(" documents {} up to {}", documents, longest) : "");
}

std::string AttentionKey::text_with_strides() const {
  std::string all = text() + " strides";
  const std::size_t used = backward ? attention_operands : static_cast<std::size_t>(AttentionOperand::dout);
  for (std::size_t i = 0; i < used; ++i) {
    if (i == static_cast<std::size_t>(AttentionOperand::sinks)) continue;
    all += fmt::format(" {}/{}/{}", strides[i].batch, strides[i].time, strides[i].head);
  }
  return all;
}

}  // namespace assay::cuda
