// A client that need not keep to the protocol.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "wireup/handshake.hpp"
#include "wireup/key_value_server.hpp"
#include "wireup/sealing.hpp"

namespace assay::host::wireup {

inline std::string text_frame(Message::Kind kind, std::initializer_list<std::string_view> texts,
                              Message::Numbers numbers = {}) {
  return frame_of(kind, numbers, std::span<const std::string_view>(texts.begin(), texts.size()));
}

template <typename Bytes>
std::string_view view_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to the server under test");
    limit_reads();
  }
  // The other end of a connection: plays the server.
  explicit RawClient(Fd accepted) : socket_(std::move(accepted)) { limit_reads(); }

  void send(std::string_view bytes) {
    if (send_what_it_takes(bytes) != bytes.size()) throw std::runtime_error("cannot send to the server under test");
  }
  // How much of it went out before the other end closed.
  std::size_t send_what_it_takes(std::string_view bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    return sent;
  }
  // Whatever comes until the server closes; "(nothing)" when it does not within a minute.
  std::string read_to_the_end() {
    std::string all;
    char buffer[4096];
    for (;;) {
      const ssize_t n = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return all;
      if (n < 0) return "(nothing)";
      all.append(buffer, static_cast<std::size_t>(n));
    }
  }
  std::string read_exactly(std::size_t bytes) {
    std::string read(bytes, '\0');
    if (recv(socket_.get(), read.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
      throw std::runtime_error("the server under test did not answer");
    return read;
  }

  // The handshake, with this token. Returns what the server thinks of it.
  Verdict::Code enter(std::string_view token) {
    const Hello mine = new_hello(Role::client);
    Hello theirs{};
    send(view_of(mine));
    read_exactly(theirs.size()).copy(theirs.data(), theirs.size());
    const Secrets secrets = secrets_of(mine, theirs, token);
    send(view_of(secrets.client_proof));
    std::array<char, Verdict::bytes> bytes{};
    read_exactly(bytes.size()).copy(bytes.data(), bytes.size());
    const Verdict verdict = verdict_in(bytes).value();
    if (verdict.code == Verdict::Code::welcome && !is_same_proof(verdict.proof, secrets.server_proof))
      throw std::runtime_error("the server under test has not proven itself");
    sealer_.emplace(secrets.to_server);
    opener_.emplace(secrets.to_client);
    return verdict.code;
  }
  void enter(const KeyValueServer& server) {
    if (enter(server.endpoint().token) != Verdict::Code::welcome)
      throw std::runtime_error("the server under test refuses its own token");
  }
  std::string sealed(std::string_view frame) { return sealer_->seal(frame); }
  void send_message(std::string_view frame) { send(sealed(frame)); }
  Message read_message() {
    std::array<char, sealed_head_bytes> head{};
    read_exactly(head.size()).copy(head.data(), head.size());
    std::string body = read_exactly(opener_->open_head(head) + seal_bytes);
    opener_->open_body(body);
    return parse_body(body);
  }
  void close() { socket_.reset(); }

 private:
  void limit_reads() {
    timeval limit{60, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  Fd socket_;
  std::optional<Sealer> sealer_;
  std::optional<Opener> opener_;
};

}  // namespace assay::host::wireup
