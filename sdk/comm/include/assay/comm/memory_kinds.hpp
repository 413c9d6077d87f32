// The kinds of memory that a collective may use, with who moves it. Which is fastest depends on the machine, the ranks,
// the collective and its size: a workload lets the user name one, or measures (measured_choice.hpp).
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::comm {

enum class MemoryKind : std::int32_t { any_memory, registered, windows, copy_engines };
inline constexpr auto memory_kinds = choices<MemoryKind>({{"any_memory", MemoryKind::any_memory},
                                                          {"registered", MemoryKind::registered},
                                                          {"windows", MemoryKind::windows},
                                                          {"copy_engines", MemoryKind::copy_engines}});

constexpr Registration registration_of(MemoryKind kind) {
  return kind == MemoryKind::any_memory   ? Registration::none
         : kind == MemoryKind::registered ? Registration::plain
                                          : Registration::symmetric;
}

// The kinds that a collective may have on a device of this kind ("cpu", "cuda"), the one that asks least first. Copy
// engines make gatherings alone.
std::vector<MemoryKind> kinds_on(std::string_view device_kind, bool is_gathering);

// Throws assay::Error(UNSUPPORTED) where the library gave other memory than `kind` asks for. `setting`: how the user
// named it, such as "gathers".
void require_registration(std::string_view setting, MemoryKind kind, Registration got,
                          const Communicator& communicator);

}  // namespace assay::comm
