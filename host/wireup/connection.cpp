#include "wireup/connection.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <system_error>

#include "wireup/endpoint.hpp"
#include "wireup/rank_list.hpp"
#include "wireup/socket_options.hpp"

namespace assay::host::wireup {
namespace {

int milliseconds_until(Connection::Deadline deadline) {
  // Rounded up: poll must not return before the deadline, again and again, with nothing to do.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Connection::Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Connection::Connection(const std::string& address, std::uint16_t port, std::string_view token, Deadline connect_by,
                       Deadline answer_by, const StopFlag& stop)
    : stop_(&stop), peer_(host_and_port(address, port)) {
  connect(address, port, connect_by);
  set_wire_options(socket_.get());
  const std::array texts = {wire_name, token};
  send(frame_of(Message::Kind::hello, {wire_version, 0, 0}, std::span(texts)), answer_by);
  const Message answer = receive(answer_by);
  if (answer.kind == Message::Kind::error)
    throw RefusedError(fmt::format("{}: {}", peer_, answer.texts.empty() ? "refused" : answer.texts.front()));
}

void Connection::connect(const std::string& address, std::uint16_t port, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    throw WireupError(fmt::format("cannot resolve '{}': {}", address, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* each = found; each; each = each->ai_next) {
    socket_ = Fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) {
      error = errno;
      continue;
    }
    if (::connect(socket_.get(), each->ai_addr, each->ai_addrlen) == 0) return;
    error = errno;
    if (error != EINPROGRESS) continue;
    wait_for(POLLOUT, deadline);
    socklen_t size = sizeof error;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0) return;
  }
  throw WireupError(fmt::format("{}: {}", peer_, std::generic_category().message(error)));
}

void Connection::send(std::string_view frame, Deadline deadline) {
  while (!frame.empty()) {
    const ssize_t n = ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (n >= 0)
      frame.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      wait_for(POLLOUT, deadline);
    else if (errno != EINTR)
      fail(errno);
  }
}

Message Connection::receive(Deadline deadline) {
  std::array<char, frame_head_bytes> head{};
  read_exactly(head.data(), head.size(), deadline);
  const std::size_t bytes = body_bytes(head);
  if (bytes > body_bytes_max) throw WireupError(fmt::format("{} is no key-value service of assay", peer_));
  std::string body(bytes, '\0');
  read_exactly(body.data(), body.size(), deadline);
  return parse_body(body);
}

void Connection::read_exactly(char* data, std::size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    const ssize_t n = recv(socket_.get(), data, bytes, 0);
    if (n > 0) {
      data += n;
      bytes -= static_cast<std::size_t>(n);
    } else if (n == 0) {
      fail(0);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLIN, deadline);
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

void Connection::wait_for(short events, Deadline deadline) const {
  pollfd waited[] = {{socket_.get(), events, 0}, {stop_->fd(), POLLIN, 0}};
  for (;;) {
    const int ready = poll(waited, 2, milliseconds_until(deadline));
    if (stop_->raised()) throw WireupError("the key-value client was stopped");
    if (ready > 0) return;  // also with an error or a closed connection: the next call on it says which
    if (ready < 0 && errno != EINTR) fail(errno);
    if (Clock::now() >= deadline)
      throw WireupError(fmt::format("{} does not answer in time: it hangs, or its machine cannot be reached", peer_));
  }
}

void Connection::fail(int error) const {
  throw WireupError(fmt::format("the key-value service at {} is gone: {}", peer_,
                                error == 0 ? "it closed the connection" : std::generic_category().message(error)));
}

std::string Connection::local_address() const {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) fail(errno);
  return numeric_address(reinterpret_cast<const sockaddr*>(&own));
}

}  // namespace assay::host::wireup
