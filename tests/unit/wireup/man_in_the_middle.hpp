// Stands between clients and a server, as whoever holds the network does: records what passes, and may change it.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "raw_client.hpp"
#include "wireup/listener.hpp"

namespace assay::host::wireup {

class ManInTheMiddle {
 public:
  enum Direction { to_server = 0, to_client = 1 };
  // What passes instead of `bytes`, of which the first lies at `offset` of this direction.
  using Change = std::function<std::string(Direction, std::size_t offset, std::string bytes)>;

  explicit ManInTheMiddle(std::uint16_t server_port, Change change = nullptr)
      : server_port_(server_port), change_(std::move(change)), thread_([this] { run(); }) {}
  ~ManInTheMiddle() {
    shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }
  ManInTheMiddle(const ManInTheMiddle&) = delete;
  ManInTheMiddle& operator=(const ManInTheMiddle&) = delete;

  std::uint16_t port() const { return listener_.port; }
  // All that has come from that side.
  std::string recorded(Direction direction) const {
    const std::lock_guard lock(mutex_);
    return recorded_[direction];
  }

 private:
  // One connection at a time is enough for these tests.
  void run() {
    for (;;) {
      pollfd waited{listener_.socket.get(), POLLIN, 0};
      if (poll(&waited, 1, 60'000) <= 0) return;
      const Fd client(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      carry(client.get());
    }
  }

  void carry(int client) {
    const Fd server = connected();
    std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {server.get(), POLLIN, 0}}};
    std::array<std::size_t, 2> passed{};
    while (poll(ends.data(), ends.size(), 60'000) > 0)
      for (const Direction direction : {to_server, to_client}) {
        if (ends[direction].revents == 0) continue;
        std::array<char, 65536> buffer{};
        const ssize_t n = recv(ends[direction].fd, buffer.data(), buffer.size(), 0);
        if (n <= 0) return;
        std::string bytes(buffer.data(), static_cast<std::size_t>(n));
        {
          const std::lock_guard lock(mutex_);
          recorded_[direction] += bytes;
        }
        const std::size_t offset = std::exchange(passed[direction], passed[direction] + bytes.size());
        if (change_) bytes = change_(direction, offset, std::move(bytes));
        if (::send(ends[1 - direction].fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return;
      }
  }

  Fd connected() const {
    Fd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) made.reset();
    return made;
  }

  const std::uint16_t server_port_;
  const Change change_;
  const Listener listener_ = listen_on(Reach::this_machine, 0);
  mutable std::mutex mutex_;
  std::array<std::string, 2> recorded_;
  std::thread thread_;
};

}  // namespace assay::host::wireup
