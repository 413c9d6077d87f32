// Parameters that count with some values of a choice alone. One that is set where nothing reads it is a mistake of the
// experiment: its figures would be taken for those of the setting.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <span>

namespace assay::workload {

struct OfChoices {
  const char* param;
  std::array<const char*, 3> read_by;  // values of the choice; fewer are followed by null
};

// INVALID_ARGUMENT that names each parameter of `settings` that the value of `choice` does not read, and that is
// neither at its default in `table` nor at what one of `presets` gives it in this case.
void require_read(const Case& c, const char* choice, std::span<const OfChoices> settings, std::span<const Param> table,
                  std::span<const Preset> presets = {});

}  // namespace assay::workload
