// One connection of a KeyValueServer, on the server's side. Everything here runs in the server's thread.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "wireup/key_value_store.hpp"
#include "wireup/message.hpp"

namespace assay::host::wireup {

class ServerConnection;

// The connections of a server share this.
struct ServerConnections {
  boost::asio::io_context& io;
  KeyValueStore& store;
  const std::string token;
  const std::chrono::milliseconds hello_timeout;
  std::unordered_set<std::shared_ptr<ServerConnection>> open{};
  // The answer that was encoded last: an exchange of N ranks is encoded once, and not N times.
  std::shared_ptr<const std::vector<std::string>> encoded_values{};
  std::shared_ptr<const std::string> encoded_frame{};
  std::size_t answers_under_way = 0;
  bool closing = false;  // the io_context stops with the last answer
};

// A client has one request under way at a time; while it waits, the connection reads on, so that it notices when the
// client goes away.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(ServerConnections& home, boost::asio::ip::tcp::socket socket);

  void start();
  // The server ends: no wait may call back, and a member leaves.
  void abandon();

 private:
  enum class Stage { hello, open, closing };
  using Frame = std::shared_ptr<const std::string>;

  void read_head();
  void read_body(std::size_t bytes);
  void take(std::string_view body);
  void take_hello(const Message& message);
  void take_request(const Message& message);
  void begin_wait(KeyValue::Timeout timeout, KeyValueStore::WaitId wait);
  KeyValueStore::Done when_done();
  void finish_wait(const WaitOutcome& outcome);
  void answer(Frame frame);
  void answer_done(std::int64_t number = 0);
  void answer_error(std::string_view text);
  // Answers and closes: the client broke the protocol, or has no business here.
  void refuse(std::string_view text);
  void linger();
  void drain();
  void close(std::string_view reason);
  // Leaves no trace in the store; the member is dealt with by the caller.
  void release();

  ServerConnections& home_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;  // until hello: for its coming; later: for the wait under way
  Stage stage_ = Stage::hello;
  bool busy_ = false;  // a request without an answer
  std::optional<KeyValueStore::WaitId> wait_;
  std::optional<KeyValueStore::MemberId> member_;
  std::array<char, frame_head_bytes> head_{};
  std::string body_;
  std::string refusal_;  // why it is closing
};

}  // namespace assay::host::wireup
