#include "wireup/key_value_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "wireup/seconds_text.hpp"

namespace assay::host::wireup {
namespace {

constexpr std::chrono::milliseconds address_time{1000};
// Those at the end of the list get a chance too when those before them have used up the time.
constexpr std::chrono::milliseconds address_time_min{100};
// A loaded service answers late, a stranger on our port never.
constexpr std::chrono::seconds hello_time{5};
constexpr std::chrono::milliseconds pause_min{20}, pause_max{250};
constexpr std::size_t idle_max = 4;
// The deadline is added to the clock: the sum must fit.
constexpr KeyValue::Timeout timeout_max = std::chrono::hours(24 * 365);

// An error that the service answers leaves the connection as good as it was.
Message checked(Message answer) {
  if (answer.kind == Message::Kind::done) return answer;
  throw WireupError(answer.texts.empty() ? "the key-value service answers nonsense" : answer.texts.front());
}

}  // namespace

// Counts a call, so that the client outlives it.
class KeyValueClient::Call {
 public:
  explicit Call(KeyValueClient& client) : client_(client) {
    std::lock_guard lock(client_.mutex_);
    ++client_.calls_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    // Under the lock: the client may be gone as soon as it is released.
    std::lock_guard lock(client_.mutex_);
    --client_.calls_;
    client_.call_ended_.notify_all();
  }

 private:
  KeyValueClient& client_;
};

KeyValueClient::KeyValueClient(Endpoint endpoint, Options options)
    : endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      stop_(options_.stop ? options_.stop : std::make_shared<StopFlag>()) {
  auto first = connect(Clock::now() + std::min(options_.connect_timeout, timeout_max));
  local_address_ = first->local_address();
  if (!options_.member) {
    put_back(std::move(first));
    return;
  }
  const std::string group = key_of(options_.member->group);
  const std::array<std::string_view, 2> texts = {group, options_.member->host};
  const Message answer =
      ask(*first, frame_of(Message::Kind::join, {options_.member->rank, 0, 0}, std::span(texts)), {});
  if (answer.kind == Message::Kind::error && !answer.texts.empty()) throw MemberRefusedError(answer.texts.front());
  membership_ = std::move(first);
}

KeyValueClient::~KeyValueClient() {
  stop();
  std::unique_lock lock(mutex_);
  call_ended_.wait(lock, [this] { return calls_ == 0; });
}

std::unique_ptr<Connection> KeyValueClient::connect(Clock::time_point deadline) {
  const auto started = Clock::now();
  for (auto pause = pause_min;; pause = std::min(2 * pause, pause_max)) {
    std::string problems, refusal;
    for (std::size_t i = 0; i < endpoint_.addresses.size(); ++i) {
      const auto now = Clock::now();
      const auto connect_by = options_.connect_timeout.count() == 0
                                  ? now + address_time
                                  : std::clamp(deadline, now + address_time_min, now + address_time);
      try {
        auto connection = std::make_unique<Connection>(endpoint_.addresses[i], endpoint_.port, endpoint_.token,
                                                       connect_by, now + hello_time, *stop_);
        std::rotate(endpoint_.addresses.begin(), endpoint_.addresses.begin() + static_cast<std::ptrdiff_t>(i),
                    endpoint_.addresses.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return connection;
      } catch (const RefusedError& error) {
        refusal = error.what();
      } catch (const WireupError& error) {
        problems += fmt::format("{}{}", problems.empty() ? "" : "; ", error.what());
      }
    }
    if (!refusal.empty()) throw RefusedError(refusal);
    if (Clock::now() + pause >= deadline)
      throw WireupError(fmt::format(
          "no key-value service within {}: {}",
          seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started)), problems));
    poll(nullptr, 0, static_cast<int>(pause.count()));
  }
}

std::unique_ptr<Connection> KeyValueClient::connect_again() const {
  // The address has answered before: if it does not now, the service is gone. One that merely lets go of a caller,
  // since strangers crowd its port, is called again.
  const auto deadline = Clock::now() + options_.answer_margin;
  for (auto pause = pause_min;; pause = std::min(2 * pause, pause_max)) {
    std::string problem;
    try {
      return std::make_unique<Connection>(endpoint_.addresses.front(), endpoint_.port, endpoint_.token, deadline,
                                          deadline, *stop_);
    } catch (const LetGoError& error) {
      if (stop_->raised() || Clock::now() + pause < deadline) {
        poll(nullptr, 0, static_cast<int>(pause.count()));
        continue;
      }
      problem = error.what();
    } catch (const WireupError& error) {
      if (stop_->raised()) throw;
      problem = error.what();
    }
    throw WireupError(fmt::format("the key-value service is gone: {}", problem));
  }
}

std::unique_ptr<Connection> KeyValueClient::take_connection() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return connect_again();
}

void KeyValueClient::put_back(std::unique_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < idle_max) idle_.push_back(std::move(connection));
}

Message KeyValueClient::call(Message::Kind kind, const Message::Numbers& numbers,
                             std::span<const std::string_view> texts, Timeout wait) {
  const Call call(*this);
  if (stop_->raised()) throw WireupError("the key-value client was stopped");
  const std::string frame = frame_of(kind, numbers, texts);
  auto connection = take_connection();
  Message answer = ask(*connection, frame, wait);
  put_back(std::move(connection));
  return checked(std::move(answer));
}

Message KeyValueClient::ask(Connection& connection, std::string_view frame, Timeout wait) const {
  const auto deadline = Clock::now() + std::min(wait, timeout_max) + options_.answer_margin;
  connection.send(frame, deadline);
  return connection.receive(deadline);
}

std::string KeyValueClient::key_of(std::string_view key) const { return options_.prefix + std::string(key); }

void KeyValueClient::set(std::string_view key, std::string_view value) {
  const std::string full = key_of(key);
  const std::array<std::string_view, 2> texts = {full, value};
  call(Message::Kind::set, {}, texts, {});
}

std::string KeyValueClient::get(std::string_view key, Timeout timeout) {
  const std::string full = key_of(key);
  const std::array<std::string_view, 1> texts = {full};
  Message answer = call(Message::Kind::get, {timeout.count(), 0, 0}, texts, timeout);
  if (answer.texts.size() != 1) throw WireupError(fmt::format("the answer for '{}' has no value", full));
  return std::move(answer.texts.front());
}

std::int64_t KeyValueClient::add(std::string_view key, std::int64_t delta) {
  const std::string full = key_of(key);
  const std::array<std::string_view, 1> texts = {full};
  return call(Message::Kind::add, {delta, 0, 0}, texts, {}).numbers[0];
}

std::vector<std::string> KeyValueClient::exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                                  std::string_view value, Timeout timeout) {
  const std::string full = key_of(name);
  const std::array<std::string_view, 2> texts = {full, value};
  return call(Message::Kind::exchange, {rank, count, timeout.count()}, texts, timeout).texts;
}

void KeyValueClient::leave() {
  const Call call(*this);
  std::unique_ptr<Connection> membership;
  {
    std::lock_guard lock(mutex_);
    membership = std::move(membership_);
  }
  if (!membership) return;
  try {
    ask(*membership, frame_of(Message::Kind::leave, {}, std::span<const std::string_view>()), {});
  } catch (const WireupError&) {
    // A service that is gone misses nobody.
    if (stop_->raised()) throw;
  }
}

void KeyValueClient::stop() noexcept { stop_->raise(); }

}  // namespace assay::host::wireup
