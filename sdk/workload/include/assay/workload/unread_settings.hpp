// Parameters that apply only to some values of a choice. Setting one that nothing reads is a mistake of the experiment:
// readers would take its figures for those of the setting.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <span>

namespace assay::workload {

struct ChoiceSetting {
  const char* param;
  std::array<const char*, 3> read_by;  // values of the choice; fewer are followed by null
};

// INVALID_ARGUMENT that names each parameter of `settings` that the value of `choice` does not read, and that is
// neither at its default in `table` nor at what one of `presets` gives it in this case.
void require_read(const Case& c, const char* choice, std::span<const ChoiceSetting> settings,
                  std::span<const Param> table, std::span<const Preset> presets = {});

}  // namespace assay::workload
