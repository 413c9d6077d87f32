// Describes to the host what lies in an arena, for the snapshot of the memory that the user may have asked for.
#pragma once
#include <assay/plugin.hpp>

#include <string>

#include "assay/train/buffer_plan.hpp"
#include "assay/train/parameters.hpp"

namespace assay::train {

// Reports the plan of `activations` and of the gradient arena that it borrows; the memory of both is the host's. The
// places that the plan reserves are gradients of `set`.
inline void report_plan(const Host& host, const BufferPlan& plan, const ParameterSet& set, void* gradients,
                        void* activations) {
  const auto* table = host.extension<assay_memory_plan>(ASSAY_EXT_MEMORY_PLAN);
  if (!table) return;
  const auto report = [&](const std::string& name, const auto& piece) {
    const bool borrowed = plan.is_borrowed(piece.offset);
    table->buffer(table, borrowed ? gradients : activations, piece.offset - (borrowed ? 0 : plan.own_begin()),
                  piece.bytes, piece.first, piece.last, to_abi(name));
  };
  for (const BufferPlan::Buffer& buffer : plan.buffers()) report(buffer.name, buffer);
  for (const BufferPlan::Taken& reserved : plan.reserved()) {
    std::string name = "gradients";
    for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
      if (plan.reserved().size() > 1 && set.gradient_offset_bytes(id) == reserved.offset)
        name = "gradient from " + set.all()[id].name;
    report(name, reserved);
  }
}

}  // namespace assay::train
