// What several tests of this folder need.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "common/fd.hpp"
#include "support/temporary_folder.hpp"
#include "wireup/key_value_client.hpp"
#include "wireup/key_value_server.hpp"

namespace assay::host::wireup {

using namespace std::chrono_literals;

// A deadline that a test never reaches when the code is right.
constexpr auto patient = 60s;
// One that a test is meant to reach.
constexpr auto brief = 50ms;

// The text of the WireupError that `act` throws; a failure of the test, and "", when it throws none.
inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const WireupError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no WireupError";
  return {};
}

// error_of in a thread of its own.
inline std::future<std::string> error_later(std::function<void()> act) {
  return std::async(std::launch::async, [act = std::move(act)] { return error_of(act); });
}

// Gives another thread the time to get somewhere. Too short a time makes a test easier to pass, and never makes it
// fail.
inline void let_others_wait() { std::this_thread::sleep_for(30ms); }

// Until `count` calls are waiting in the store.
inline void await_waits(const KeyValueStore& store, std::size_t count) {
  while (store.waits() < count) std::this_thread::sleep_for(1ms);
}

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text) << "\nexpected: " << (part)

struct Served {
  KeyValueStore store;
  KeyValueServer server;

  explicit Served(KeyValueServer::Options options = {}) : server(store, std::move(options)) {}

  KeyValueClient::Options member(std::int32_t rank, std::string group = "case/7/") const {
    KeyValueClient::Options options;
    options.member = Member{std::move(group), rank, "node" + std::to_string(rank)};
    return options;
  }
};

// A client that speaks no protocol.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{60, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect to the server under test");
  }
  void send(std::string_view bytes) {
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("cannot send to the server under test");
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
  // The next frame's message.
  Message read_message() {
    std::array<char, frame_head_bytes> head{};
    read_exactly(head.data(), head.size());
    std::string body(body_bytes(head), '\0');
    read_exactly(body.data(), body.size());
    return parse_body(body);
  }
  void close() { socket_.reset(); }

 private:
  void read_exactly(char* data, std::size_t bytes) {
    if (recv(socket_.get(), data, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
      throw std::runtime_error("the server under test did not answer");
  }

  Fd socket_;
};

inline std::string text_frame(Message::Kind kind, std::initializer_list<std::string_view> texts,
                              Message::Numbers numbers = {}) {
  return frame_of(kind, numbers, std::span<const std::string_view>(texts.begin(), texts.size()));
}

using test::TemporaryFolder;

}  // namespace assay::host::wireup
