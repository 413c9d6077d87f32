#include "wireup/listener.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

template <typename T>
Address address_of(const T& specific) {
  Address address;
  std::memcpy(&address.storage, &specific, sizeof specific);
  address.bytes = sizeof specific;
  return address;
}

Address v4_address(std::uint32_t host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(host);
  return address_of(v4);
}

Address v6_address(const in6_addr& host, std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = host;
  return address_of(v6);
}

[[noreturn]] void refuse(std::uint16_t port, int error) {
  if (error == EADDRINUSE)
    throw WireupError(
        fmt::format("port {} is taken: another process of this machine listens there; end it, choose "
                    "another port, or none for any free one",
                    port));
  throw WireupError(fmt::format("cannot listen on port {}: {}{}", port, std::generic_category().message(error),
                                error == EACCES ? "; choose one above 1023" : ""));
}

std::uint16_t bound_port(int socket) {
  Address own;
  own.bytes = sizeof own.storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.bytes) != 0) refuse(0, errno);
  // The port lies at the same place for both families.
  sockaddr_in v4{};
  std::memcpy(&v4, &own.storage, sizeof v4);
  return ntohs(v4.sin_port);
}

}  // namespace

namespace {

Fd socket_of(int family) { return Fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// 0, or what stands in the way.
int bind_to(const Listener& listener, const Address& address) {
  const int fd = listener.socket.get();
  const int on = 1, off = 0;
  // A port whose earlier owner has just ended is free.
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      (listener.family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) ||
      bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) != 0)
    return errno;
  return 0;
}

}  // namespace

Listener listen_on(Reach reach, std::uint16_t port) {
  Listener listener;
  int error = EAFNOSUPPORT;
  if (reach == Reach::network) {
    listener = {.socket = socket_of(AF_INET6), .family = AF_INET6, .port = 0};
    if (listener.socket) error = bind_to(listener, v6_address(in6addr_any, port));
  }
  // Either the loopback, or a system without IPv6.
  if (!listener.socket && reach != Reach::this_machine_v6) {
    listener = {.socket = socket_of(AF_INET), .family = AF_INET, .port = 0};
    error = bind_to(listener, v4_address(reach == Reach::network ? INADDR_ANY : INADDR_LOOPBACK, port));
  }
  // A machine whose loopback is ::1 alone.
  if (reach == Reach::this_machine_v6 || (error == EADDRNOTAVAIL && reach == Reach::this_machine)) {
    listener = {.socket = socket_of(AF_INET6), .family = AF_INET6, .port = 0};
    error = bind_to(listener, v6_address(in6addr_loopback, port));
  }
  if (error != 0) refuse(port, error);
  if (listen(listener.socket.get(), SOMAXCONN) != 0) refuse(port, errno);
  listener.port = bound_port(listener.socket.get());
  return listener;
}

}  // namespace assay::host::wireup
