// A KeyValueStore in another process, through a socket.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wireup/connection.hpp"
#include "wireup/endpoint.hpp"
#include "wireup/key_value_store.hpp"
#include "wireup/stop_flag.hpp"

namespace assay::host::wireup {

// Thread-safe; calls do not wait for one another. A connection serves one call at a time, so there are as many as there
// were calls at once.
//
// Deadlines are kept by the service, which knows who is missing; the client's own, later one is for a service that
// hangs or whose machine is gone. A service that has ended is an error of every call, at once.
class KeyValueClient final : public KeyValue {
 public:
  struct Options {
    std::string prefix;            // of every key and name, and of the member's group
    std::optional<Member> member;  // joins; its group is below `prefix`: empty for the prefix itself
    // 0: every address is tried once.
    Timeout connect_timeout = std::chrono::seconds(30);
    // What the service gets on top of a call's own timeout.
    Timeout answer_margin = std::chrono::seconds(10);
    // Raised elsewhere, it ends every call at once, that of the constructor too. None: there is stop() alone.
    std::shared_ptr<StopFlag> stop{};
  };

  // Tries the addresses in turn, about a second each, until one answers. Throws RefusedError for a wrong token or
  // another version, and WireupError that says what each address answered when the time is over. The member joins, or
  // the text says why it may not.
  KeyValueClient(Endpoint endpoint, Options options);
  // Ends calls under way in other threads as stop() does, and waits until they have returned. The member is lost unless
  // it left.
  ~KeyValueClient() override;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Timeout timeout) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::vector<std::string> exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                    std::string_view value, Timeout timeout) override;

  // The member says goodbye: that its connection closes is no loss from here on. Nothing without a
  // member, and no error when the service is gone.
  void leave();
  // Every call under way and every later one throws WireupError, at once. The member stays.
  void stop() noexcept;

  // The numeric address of this end of the connection: of the interface that leads to the service.
  const std::string& local_address() const noexcept { return local_address_; }
  // The service's, with the address that answered as the first.
  const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  using Clock = Connection::Clock;
  class Call;

  std::unique_ptr<Connection> connect(Clock::time_point deadline);
  std::unique_ptr<Connection> connect_again() const;
  std::unique_ptr<Connection> take_connection();
  void put_back(std::unique_ptr<Connection> connection);
  Message call(Message::Kind kind, const Message::Numbers& numbers, std::span<const std::string_view> texts,
               Timeout wait);
  Message ask(Connection& connection, std::string_view frame, Timeout wait) const;
  std::string key_of(std::string_view key) const;

  Endpoint endpoint_;
  const Options options_;
  const std::shared_ptr<StopFlag> stop_;
  std::string local_address_;
  std::mutex mutex_;
  std::condition_variable call_ended_;
  int calls_ = 0;                                  // under way
  std::vector<std::unique_ptr<Connection>> idle_;  // open, without a call
  std::unique_ptr<Connection> membership_;  // the member's; carries no calls, and so closes with the process alone
};

}  // namespace assay::host::wireup
