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
  prove_each_other(token, answer_by);
}

void Connection::prove_each_other(std::string_view token, Deadline deadline) {
  const Hello mine = new_hello(Role::client);
  Hello theirs{};
  send_bytes({mine.data(), mine.size()}, deadline);
  read_exactly(theirs.data(), theirs.size(), deadline);
  check_version(theirs);
  const Secrets secrets = secrets_of(mine, theirs, token);
  send_bytes({reinterpret_cast<const char*>(secrets.client_proof.data()), secrets.client_proof.size()}, deadline);
  std::array<char, Verdict::bytes> bytes{};
  read_exactly(bytes.data(), bytes.size(), deadline);
  const auto verdict = verdict_in(bytes);
  if (verdict && verdict->code == Verdict::Code::wrong_token)
    throw RefusedError(fmt::format("{}: wrong token: this key-value service belongs to another launch", peer_));
  if (!verdict || !is_same_proof(verdict->proof, secrets.server_proof))
    throw RefusedError(
        fmt::format("{} does not prove that it knows the token, so it is not rank 0 of this launch; end what listens "
                    "there, or choose another port",
                    peer_));
  sealer_.emplace(secrets.to_server);
  opener_.emplace(secrets.to_client);
}

void Connection::check_version(const Hello& theirs) const {
  const auto version = version_in(theirs, Role::server);
  if (!version) throw RefusedError(fmt::format("{} is no key-value service of assay", peer_));
  if (*version != wire_version)
    throw RefusedError(
        fmt::format("{}: the key-value service speaks version {} of its protocol, this client version {}; use the same "
                    "assay for all ranks",
                    peer_, *version, wire_version));
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

void Connection::send(std::string_view frame, Deadline deadline) { send_bytes(sealer_->seal(frame), deadline); }

void Connection::send_bytes(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      wait_for(POLLOUT, deadline);
    else if (errno != EINTR)
      fail(errno);
  }
}

Message Connection::receive(Deadline deadline) {
  std::array<char, sealed_head_bytes> head{};
  read_exactly(head.data(), head.size(), deadline);
  try {
    const std::size_t bytes = opener_->open_head(head);
    if (bytes > body_bytes_max) throw WireupError(fmt::format("{} announces {} bytes in one message", peer_, bytes));
    std::string body(bytes + seal_bytes, '\0');
    read_exactly(body.data(), body.size(), deadline);
    opener_->open_body(body);
    return parse_body(body);
  } catch (const SealError& error) {
    throw SealError(
        fmt::format("the connection to the key-value service at {} cannot be trusted: {}", peer_, error.what()));
  }
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
  if (!opener_ && (error == 0 || error == ECONNRESET || error == EPIPE))
    throw LetGoError(
        fmt::format("{} closed the connection before it had proven that it knows the token: another program listens "
                    "there, or rank 0 "
                    "has too many callers or has just ended",
                    peer_));
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
