#include "wireup/socket_options.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {
namespace {

constexpr int keepalive_idle_s = 5, keepalive_interval_s = 1, keepalive_probes = 3;
static_assert(keepalive_idle_s + keepalive_interval_s * keepalive_probes == vanished_after.count());

void set_option(int socket, int level, int option, int value, const char* name) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0)
    throw WireupError(fmt::format("cannot set {} of a connection: {}", name, std::generic_category().message(errno)));
}

}  // namespace

void set_wire_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s, "TCP_KEEPIDLE");
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s, "TCP_KEEPINTVL");
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes, "TCP_KEEPCNT");
  // Keepalive probes are not sent while data is under way; this is the limit for that.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::chrono::milliseconds(vanished_after).count()),
             "TCP_USER_TIMEOUT");
}

}  // namespace assay::host::wireup
