// One connection of a KeyValueServer, on the server's side. Everything here runs in the server's thread.
//
// Until the client has proven that it knows the token, two reads of fixed sizes are all that is taken from it, and
// nothing of it is looked at but name, version and proof. What follows is sealed.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "wireup/key_value_store.hpp"
#include "wireup/sealing.hpp"
#include "wireup/strangers.hpp"

namespace assay::host::wireup {

class ServerConnection;

// The connections of a server share this.
struct ServerConnections {
  boost::asio::io_context& io;
  KeyValueStore& store;
  const std::string token;
  const std::chrono::milliseconds hello_timeout;
  Strangers& strangers;
  std::unordered_set<std::shared_ptr<ServerConnection>> open{};
  // Those of them that have not proven themselves, the oldest first.
  std::list<ServerConnection*> unproven{};
  std::function<void()> fewer_unproven{};  // called when `unproven` has become shorter
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
  // `address`: of the client, for texts.
  ServerConnection(ServerConnections& home, boost::asio::ip::tcp::socket socket, std::string address);

  void start();
  // The server ends: no wait may call back, and a member leaves.
  void abandon();
  // Others wait while this one, which has proven nothing yet, is silent.
  void crowd_out();
  std::chrono::steady_clock::time_point started() const { return started_; }

 private:
  enum class Stage { unproven, open, closing };

  void read_hello();
  void take_hello();
  void read_proof();
  void take_proof();
  // Sends what the handshake says, and continues with `then`, or closes.
  template <std::size_t N>
  void tell(const std::array<char, N>& bytes, void (ServerConnection::*then)());
  // Counts the connection as a stranger's, and closes it after the bytes under way.
  void turn_away(Refusal why);
  void close_quietly() { close({}); }

  void read_head();
  void read_body(std::size_t bytes);
  void take(std::string_view body);
  void take_request(const Message& message);
  void begin_wait(KeyValue::Timeout timeout, KeyValueStore::WaitId wait);
  KeyValueStore::Done when_done();
  void finish_wait(const WaitOutcome& outcome);
  void answer(std::string_view frame);
  void answer_done(std::int64_t number = 0);
  void answer_error(std::string_view text);
  // Answers and closes: the client broke the protocol.
  void refuse(std::string_view text);
  void linger();
  void drain();
  void close(std::string_view reason);
  // Leaves no trace in the store; the member is dealt with by the caller.
  void release();
  void no_longer_unproven();

  ServerConnections& home_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;  // until proven: for that; later: for the wait under way
  const std::string address_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Stage stage_ = Stage::unproven;
  std::optional<std::list<ServerConnection*>::iterator> unproven_place_;
  bool busy_ = false;  // a request without an answer
  std::optional<KeyValueStore::WaitId> wait_;
  std::optional<KeyValueStore::MemberId> member_;
  Hello hello_{}, own_hello_{};
  Proof proof_{};
  std::array<char, Verdict::bytes> verdict_{};
  std::optional<Sealer> sealer_;
  std::optional<Opener> opener_;
  std::array<char, sealed_head_bytes> head_{};
  std::string body_;
  std::string refusal_;  // why it is closing
};

}  // namespace assay::host::wireup
