#include "common/memory_kinds.hpp"
#include "common/stage.hpp"

namespace assay::host {

const char* name_of(Stage stage) {
  static constexpr const char* names[] = {"load",   "create", "setup",   "warmup", "measure",
                                          "finish", "verify", "destroy", "done"};
  return names[static_cast<std::size_t>(stage)];
}

const char* memory_kind_name(std::size_t kind) {
  static constexpr const char* names[memory_kind_count] = {
      "parameters", "gradients", "optimizer_state", "activations", "workspace", "communication", "data"};
  return kind < memory_kind_count ? names[kind] : "unknown";
}

}  // namespace assay::host
