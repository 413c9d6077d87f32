#include "wireup/key_value_server.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <thread>
#include <utility>

#include "wireup/server_connection.hpp"
#include "wireup/socket_options.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using tcp = asio::ip::tcp;

// Out of descriptors or memory: the next attempt may find some again.
constexpr std::chrono::milliseconds accept_pause{100};
// For clients that are slow to take their answer when the server ends.
constexpr std::chrono::seconds last_answers_time{1};
// Between two looks at what the connections want.
constexpr int accepts_in_a_row = 64;

void raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class KeyValueServer::Service {
 public:
  Service(KeyValueStore& store, const Options& options, Listener listener, Strangers& strangers)
      : home_{io_, store, options.token, options.hello_timeout, strangers},
        unproven_max_(options.unproven_max),
        unproven_time_(options.unproven_time),
        protocol_(listener.family == AF_INET6 ? tcp::v6() : tcp::v4()),
        acceptor_(io_),
        pause_(io_),
        room_(io_) {
    home_.fewer_unproven = [this] {
      if (next_.socket) asio::post(io_, [this] { go_on_with_next(); });
    };
    acceptor_.assign(protocol_, listener.socket.release());
    wait_for_client();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Service() {
    // A wait that ended with the call before this one is handed to the thread by a handler that may still be in making:
    // the second of two rounds comes after it.
    asio::post(io_, [this] { asio::post(io_, [this] { close(); }); });
    thread_.join();
    for (const auto& connection : home_.open) connection->abandon();
  }

 private:
  // Whoever was answered gets the answer: ranks end together, and the one that serves the others may be the first.
  void close() {
    Error ignored;
    acceptor_.close(ignored);
    next_ = {};
    room_.cancel();
    if (home_.answers_under_way == 0) return io_.stop();
    home_.closing = true;
    pause_.expires_after(last_answers_time);
    pause_.async_wait([this](const Error& error) {
      if (!error) io_.stop();
    });
  }

  void wait_for_client() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](const Error& error) {
      if (!error) accept_clients();
    });
  }

  // Not asio's own accept: its sockets would be inherited by the workers that this process starts meanwhile, and a
  // connection that a worker holds open too does not end when it should.
  void accept_clients() {
    for (int i = 0; i < accepts_in_a_row; ++i) {
      if (!next_.socket) accept_next();
      if (!next_.socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return pause_accepting();
        if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        continue;  // a client that gave up before it was accepted
      }
      if (!make_room()) return;
      start_connection(std::exchange(next_, {}));
    }
    wait_for_client();
  }

  void accept_next() {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    next_.socket = Fd(accept4(acceptor_.native_handle(), generic, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (next_.socket) next_.address = numeric_address(generic);
  }

  // For one more that has not proven itself. Where there is none yet, goes on when there is.
  bool make_room() {
    if (home_.unproven.size() < unproven_max_) return true;
    ServerConnection& oldest = *home_.unproven.front();
    const auto may_go_at = oldest.started() + unproven_time_;
    if (std::chrono::steady_clock::now() >= may_go_at) {
      oldest.crowd_out();
      return true;
    }
    room_.expires_at(may_go_at);
    room_.async_wait([this](const Error& error) {
      if (!error) go_on_with_next();
    });
    return false;
  }

  void go_on_with_next() {
    if (next_.socket) accept_clients();
  }

  void pause_accepting() {
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](const Error& error) {
      if (!error) wait_for_client();
    });
  }

  struct Accepted {
    Fd socket;
    std::string address;
  };

  void start_connection(Accepted client) {
    try {
      set_wire_options(client.socket.get());
    } catch (const WireupError&) {
      return;  // it is gone already
    }
    tcp::socket socket(home_.io);
    socket.assign(protocol_, client.socket.release());
    std::make_shared<ServerConnection>(home_, std::move(socket), std::move(client.address))->start();
  }

  asio::io_context io_{1};
  ServerConnections home_;
  const std::size_t unproven_max_;
  const std::chrono::milliseconds unproven_time_;
  const tcp protocol_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  asio::steady_timer room_;  // until the oldest connection that has not proven itself may go
  Accepted next_;            // has been accepted, and waits for room
  std::thread thread_;
};

KeyValueServer::KeyValueServer(KeyValueStore& store, Options options) {
  raise_open_files_limit();
  if (options.token.empty()) options.token = random_token();
  Listener listener = listen_on(options.reach, options.port);
  endpoint_.port = listener.port;
  endpoint_.token = options.token;
  if (options.reach == Reach::network)
    endpoint_.addresses = addresses_of_this_machine();
  else
    endpoint_.addresses = {listener.family == AF_INET6 ? "::1" : "127.0.0.1"};
  service_ = std::make_unique<Service>(store, options, std::move(listener), strangers_);
}

KeyValueServer::~KeyValueServer() = default;

}  // namespace assay::host::wireup
