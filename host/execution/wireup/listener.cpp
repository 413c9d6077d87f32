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

Address v6_any(std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_any;
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

Listener listen_on(Reach reach, std::uint16_t port) {
  Listener listener;
  Address address;
  if (reach == Reach::network) {
    listener.socket = Fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    listener.family = AF_INET6;
    address = v6_any(port);
  }
  // Either the loopback, or a system without IPv6.
  if (!listener.socket) {
    listener.socket = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    listener.family = AF_INET;
    address = v4_address(reach == Reach::network ? INADDR_ANY : INADDR_LOOPBACK, port);
  }
  const int fd = listener.socket.get();
  const int on = 1, off = 0;
  if (fd < 0) refuse(port, errno);
  // A port whose earlier owner has just ended is free.
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) refuse(port, errno);
  if (listener.family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
    refuse(port, errno);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) != 0) refuse(port, errno);
  if (listen(fd, SOMAXCONN) != 0) refuse(port, errno);
  listener.port = bound_port(fd);
  return listener;
}

}  // namespace assay::host::wireup
