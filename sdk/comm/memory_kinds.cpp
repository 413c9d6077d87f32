#include "assay/comm/memory_kinds.hpp"

#include <string>

namespace assay::comm {

std::vector<MemoryKind> kinds_on(std::string_view device_kind, bool is_gathering) {
  if (device_kind == "cpu") return {MemoryKind::any_memory};
  std::vector<MemoryKind> kinds{MemoryKind::any_memory, MemoryKind::registered, MemoryKind::windows};
  if (is_gathering) kinds.push_back(MemoryKind::copy_engines);
  return kinds;
}

void require_registration(std::string_view setting, MemoryKind kind, Registration got,
                          const Communicator& communicator) {
  const Registration wanted = registration_of(kind);
  if (got == wanted) return;
  throw Error(ASSAY_UNSUPPORTED, std::string(setting) + " = \"" + memory_kinds.name_of(kind) + "\" needs " +
                                     (wanted == Registration::plain ? "registered memory" : "symmetric windows") +
                                     ", and " + communicator.description() +
                                     " has none between these GPUs; leave it out");
}

}  // namespace assay::comm
