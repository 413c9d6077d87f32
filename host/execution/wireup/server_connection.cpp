#include "wireup/server_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <limits>
#include <utility>

#include "wireup/socket_options.hpp"

namespace assay::host::wireup {
namespace {

namespace asio = boost::asio;
constexpr std::chrono::seconds linger_time{1};
constexpr std::size_t drain_bytes = 64 * 1024;
using Error = boost::system::error_code;

// A timer adds the timeout to the clock: the sum must fit.
KeyValue::Timeout timeout_of(std::int64_t milliseconds) {
  constexpr std::int64_t year = std::int64_t{365} * 24 * 3600 * 1000;
  return KeyValue::Timeout(std::clamp<std::int64_t>(milliseconds, 0, year));
}

std::int32_t rank_of(std::int64_t number) {
  if (number < 0 || number > std::numeric_limits<std::int32_t>::max())
    throw WireupError(fmt::format("a message has the rank {}", number));
  return static_cast<std::int32_t>(number);
}

bool writes(Message::Kind kind) { return kind != Message::Kind::get && kind != Message::Kind::leave; }

// What happens to a group happens to all below its prefix: one that reaches into the leader's keys is the leader's as
// well.
bool belongs_to_leader(Message::Kind kind, std::string_view name) {
  return name.starts_with(leader_prefix) || (kind == Message::Kind::join && leader_prefix.starts_with(name));
}

std::string reason_of(const Error& error) {
  if (error == asio::error::eof) return "its connection closed without a goodbye";
  if (error == asio::error::timed_out)
    return fmt::format("its machine has not answered for {} s", vanished_after.count());
  return "its connection failed: " + error.message();
}

}  // namespace

ServerConnection::ServerConnection(ServerConnections& home, asio::ip::tcp::socket socket, std::string address)
    : home_(home), socket_(std::move(socket)), timer_(home.io), address_(std::move(address)) {}

void ServerConnection::start() {
  home_.open.insert(shared_from_this());
  unproven_place_ = home_.unproven.insert(home_.unproven.end(), this);
  timer_.expires_after(home_.hello_timeout);
  timer_.async_wait([self = shared_from_this()](const Error& error) {
    if (!error && self->stage_ == Stage::unproven) self->turn_away(Refusal::silent);
  });
  read_hello();
}

void ServerConnection::abandon() {
  release();
  if (member_) home_.store.leave(*std::exchange(member_, std::nullopt));
}

void ServerConnection::read_head() {
  asio::async_read(socket_, asio::buffer(head_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (error) return self->close(reason_of(error));
    try {
      const std::size_t bytes = self->opener_->open_head(self->head_);
      if (bytes > body_bytes_max)
        return self->refuse(fmt::format("a message of {} bytes; at most {} are taken", bytes, body_bytes_max));
      self->read_body(bytes + seal_bytes);
    } catch (const SealError& problem) {
      self->home_.strangers.note(self->address_, Refusal::broken_seal);
      self->close(problem.what());
    }
  });
}

void ServerConnection::read_body(std::size_t bytes) {
  body_.resize(bytes);
  asio::async_read(socket_, asio::buffer(body_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (error) return self->close(reason_of(error));
    try {
      self->opener_->open_body(self->body_);
      self->take(self->body_);
    } catch (const SealError& problem) {
      self->home_.strangers.note(self->address_, Refusal::broken_seal);
      return self->close(problem.what());
    } catch (const WireupError& problem) {
      self->refuse(problem.what());
    }
    if (self->stage_ != Stage::closing) self->read_head();
  });
}

void ServerConnection::take(std::string_view body) {
  const Message message = parse_body(body);
  if (busy_) throw WireupError("a request came before the answer to the one before it");
  busy_ = true;
  take_request(message);
}

void ServerConnection::take_request(const Message& message) {
  using Kind = Message::Kind;
  const auto& [kind, numbers, texts] = message;
  const auto expect_texts = [&texts = texts](std::size_t count) {
    if (texts.size() != count) throw WireupError(fmt::format("a message has {} texts, not {}", texts.size(), count));
  };
  if (writes(kind) && !texts.empty() && belongs_to_leader(kind, texts.front()))
    return answer_error(fmt::format("'{}' is the leader's: only the process of rank 0 writes below '{}'", texts.front(),
                                    leader_prefix));
  switch (kind) {
    case Kind::join:
      expect_texts(2);
      if (member_) throw WireupError("a connection joined twice");
      try {
        member_ = home_.store.join({texts[0], rank_of(numbers[0]), texts[1]});
      } catch (const WireupError& problem) {
        return answer_error(problem.what());
      }
      return answer_done();
    case Kind::leave:
      if (member_) home_.store.leave(*std::exchange(member_, std::nullopt));
      return answer_done();
    case Kind::set:
      expect_texts(2);
      home_.store.set(texts[0], texts[1]);
      return answer_done();
    case Kind::add: expect_texts(1); return answer_done(home_.store.add(texts[0], numbers[0]));
    case Kind::get: {
      expect_texts(1);
      const auto timeout = timeout_of(numbers[0]);
      return begin_wait(timeout, home_.store.begin_get(texts[0], timeout, when_done()));
    }
    case Kind::exchange: {
      expect_texts(2);
      const auto timeout = timeout_of(numbers[2]);
      return begin_wait(timeout, home_.store.begin_exchange(texts[0], rank_of(numbers[0]), rank_of(numbers[1]),
                                                            texts[1], timeout, when_done()));
    }
    case Kind::done:
    case Kind::error: break;
  }
  throw WireupError(fmt::format("a client sent a message of kind {}", static_cast<int>(kind)));
}

KeyValueStore::Done ServerConnection::when_done() {
  // The store calls from any thread and is locked meanwhile: the outcome is handed to the server's thread.
  return [weak = weak_from_this(), &io = home_.io](WaitOutcome&& outcome) {
    asio::post(io, [weak, outcome = std::move(outcome)] {
      if (const auto self = weak.lock()) self->finish_wait(outcome);
    });
  };
}

void ServerConnection::begin_wait(KeyValue::Timeout timeout, KeyValueStore::WaitId wait) {
  wait_ = wait;
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this(), wait](const Error& error) {
    if (!error && self->wait_ == wait) self->home_.store.expire(wait);
  });
}

void ServerConnection::finish_wait(const WaitOutcome& outcome) {
  if (stage_ != Stage::open) return;
  wait_.reset();
  timer_.cancel();
  if (!outcome.values) return answer_error(outcome.error);
  if (outcome.values != home_.encoded_values) {
    try {
      home_.encoded_frame = std::make_shared<const std::string>(frame_of(Message::Kind::done, {}, *outcome.values));
      home_.encoded_values = outcome.values;
    } catch (const WireupError& problem) {
      return answer_error(problem.what());
    }
  }
  answer(*home_.encoded_frame);
}

void ServerConnection::answer(std::string_view frame) {
  const auto sealed = std::make_shared<const std::string>(sealer_->seal(frame));
  const auto buffer = asio::buffer(*sealed);
  // From here on the client may see the answer and send its next request, before the handler below has run.
  busy_ = false;
  ++home_.answers_under_way;
  asio::async_write(socket_, buffer, [self = shared_from_this(), sealed](const Error& error, std::size_t) {
    if (--self->home_.answers_under_way == 0 && self->home_.closing) self->home_.io.stop();
    if (error) return self->close(reason_of(error));
    if (self->stage_ == Stage::closing) self->linger();
  });
}

void ServerConnection::answer_done(std::int64_t number) {
  answer(frame_of(Message::Kind::done, {number, 0, 0}, std::span<const std::string_view>()));
}

void ServerConnection::answer_error(std::string_view text) {
  const std::array texts = {text};
  answer(frame_of(Message::Kind::error, {}, std::span(texts)));
}

void ServerConnection::refuse(std::string_view text) {
  if (stage_ == Stage::closing) return;
  stage_ = Stage::closing;
  refusal_ = fmt::format("the service refused its message: {}", text);
  answer_error(text);
}

void ServerConnection::linger() {
  // Closing with unread bytes makes the kernel throw away the answer at the client's end.
  Error ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  timer_.expires_after(linger_time);
  timer_.async_wait([self = shared_from_this()](const Error& error) {
    if (!error) self->close(self->refusal_);
  });
  drain();
}

void ServerConnection::drain() {
  body_.resize(drain_bytes);
  socket_.async_read_some(asio::buffer(body_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (error) return self->close(self->refusal_);
    self->drain();
  });
}

void ServerConnection::close(std::string_view reason) {
  const auto self = shared_from_this();
  release();
  if (member_) home_.store.lose(*std::exchange(member_, std::nullopt), reason);
  home_.open.erase(self);
}

void ServerConnection::release() {
  stage_ = Stage::closing;
  no_longer_unproven();
  if (wait_) home_.store.cancel(*std::exchange(wait_, std::nullopt));
  timer_.cancel();
  Error ignored;
  socket_.close(ignored);
}

}  // namespace assay::host::wireup
