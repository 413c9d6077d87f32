// What a ServerConnection does until its client has proven itself, or is turned away.
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "wireup/server_connection.hpp"

namespace assay::host::wireup {

namespace asio = boost::asio;
using Error = boost::system::error_code;

void ServerConnection::crowd_out() { turn_away(Refusal::crowded_out); }

template <std::size_t N>
void ServerConnection::tell(const std::array<char, N>& bytes, void (ServerConnection::*then)()) {
  asio::async_write(socket_, asio::buffer(bytes), [self = shared_from_this(), then](const Error& error, std::size_t) {
    if (self->stage_ == Stage::closing) return;
    if (error && self->stage_ == Stage::unproven) return self->turn_away(Refusal::gone);
    if (error) return self->close("its connection failed: " + error.message());
    (self.get()->*then)();
  });
}

void ServerConnection::read_hello() {
  asio::async_read(socket_, asio::buffer(hello_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (self->stage_ != Stage::unproven) return;
    if (error) return self->turn_away(Refusal::gone);
    self->take_hello();
  });
}

void ServerConnection::take_hello() {
  const auto version = version_in(hello_, Role::client);
  if (!version) return turn_away(Refusal::other_protocol);
  own_hello_ = new_hello(Role::server);
  if (*version != wire_version) {
    home_.strangers.note(address_, Refusal::other_version);
    no_longer_unproven();
    // Its own version is what the client says to its user.
    return tell(own_hello_, &ServerConnection::close_quietly);
  }
  tell(own_hello_, &ServerConnection::read_proof);
}

void ServerConnection::read_proof() {
  asio::async_read(socket_, asio::buffer(proof_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (self->stage_ != Stage::unproven) return;
    if (error) return self->turn_away(Refusal::gone);
    self->take_proof();
  });
}

void ServerConnection::take_proof() {
  const Secrets secrets = secrets_of(hello_, own_hello_, home_.token);
  if (!is_same_proof(proof_, secrets.client_proof)) {
    home_.strangers.note(address_, Refusal::wrong_token);
    no_longer_unproven();
    verdict_ = bytes_of({Verdict::Code::wrong_token, {}});
    return tell(verdict_, &ServerConnection::close_quietly);
  }
  no_longer_unproven();
  timer_.cancel();
  stage_ = Stage::open;
  sealer_.emplace(secrets.to_client);
  opener_.emplace(secrets.to_server);
  verdict_ = bytes_of({Verdict::Code::welcome, secrets.server_proof});
  tell(verdict_, &ServerConnection::read_head);
}

void ServerConnection::turn_away(Refusal why) {
  if (stage_ != Stage::unproven) return;
  if (unproven_place_) home_.strangers.note(address_, why);
  close({});
}

void ServerConnection::no_longer_unproven() {
  if (!unproven_place_) return;
  home_.unproven.erase(*std::exchange(unproven_place_, std::nullopt));
  if (home_.fewer_unproven) home_.fewer_unproven();
}

}  // namespace assay::host::wireup
