#include "common/memory_kinds.hpp"
#include "common/stage.hpp"

#include <algorithm>
#include <array>

namespace assay::host {

namespace {

constexpr std::array<const char*, 10> stage_names{"load",   "create", "setup",   "warmup", "measure",
                                                  "finish", "verify", "destroy", "deinit", "done"};

}  // namespace

const char* name_of(Stage stage) { return stage_names[static_cast<std::size_t>(stage)]; }

std::optional<Stage> stage_of(std::string_view name) {
  const auto found = std::find(stage_names.begin(), stage_names.end(), name);
  return found == stage_names.end() ? std::nullopt : std::optional(static_cast<Stage>(found - stage_names.begin()));
}

const char* memory_kind_name(std::size_t kind) {
  static constexpr const char* names[memory_kind_count] = {
      "parameters", "gradients", "optimizer_state", "activations", "workspace", "communication", "data"};
  return kind < memory_kind_count ? names[kind] : "unknown";
}

}  // namespace assay::host
