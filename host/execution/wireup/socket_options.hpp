// What every connection of the key-value service is set to, on both ends.
#pragma once
#include <chrono>

namespace assay::host::wireup {

// A machine that vanished (no power, cable pulled) closes no connection: after this time without an answer of its
// kernel it counts as gone.
constexpr std::chrono::seconds vanished_after{8};

// Small messages go out at once, and a vanished peer is noticed. Throws WireupError.
void set_wire_options(int socket);

}  // namespace assay::host::wireup
