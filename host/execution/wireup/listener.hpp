// The socket that a key-value service listens on.
#pragma once
#include <cstdint>

#include "common/fd.hpp"

namespace assay::host::wireup {

enum class Reach {
  this_machine,     // the loopback alone
  this_machine_v6,  // ::1 alone
  network           // every interface, IPv4 and, where the system has it, IPv6
};

struct Listener {
  Fd socket;  // non-blocking, closed by exec
  int family = 0;
  std::uint16_t port = 0;
};

// Port 0: any free one. Throws WireupError that names the port and the remedy when it is taken.
Listener listen_on(Reach reach, std::uint16_t port);

}  // namespace assay::host::wireup
