// assay_wireup_bench [N]: N simulated ranks, each a thread with its own client, against one server on the
// loopback. Prints how long the slowest needs for each part.
#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "wireup/key_value_client.hpp"
#include "wireup/key_value_server.hpp"

namespace {

using namespace assay::host::wireup;
using Clock = std::chrono::steady_clock;

class Stopwatch {
 public:
  // Called by one thread while the others wait at the barrier.
  void lap(const char* what) {
    const auto now = Clock::now();
    fmt::print("  {:<42} {:9.2f} ms\n", what, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = Clock::now();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 64;
  if (ranks < 1) {
    fmt::print(stderr, "usage: assay_wireup_bench [RANKS]\n");
    return 2;
  }
  constexpr std::chrono::seconds patient{120};
  constexpr int exchanges = 10;
  KeyValueStore store;
  const KeyValueServer server(store, {});
  const char* parts[] = {"start of the threads", "connect, hello and join", "set a key of 20 bytes",
                         "exchange of 20 bytes", "10 exchanges more",       "get the neighbour's key",
                         "leave and close"};
  Stopwatch stopwatch;
  std::atomic<int> failed = 0;
  int part = 0;
  std::barrier line(ranks, [&]() noexcept { stopwatch.lap(parts[part++]); });
  fmt::print("{} ranks\n", ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        line.arrive_and_wait();
        KeyValueClient::Options options;
        options.connect_timeout = patient;
        options.member = Member{"case/", rank, "node"};
        auto client = std::make_unique<KeyValueClient>(server.endpoint(), options);
        line.arrive_and_wait();
        client->set(fmt::format("case/key/{}", rank), fmt::format("{:020}", rank));
        line.arrive_and_wait();
        const auto all = client->exchange("case/first", rank, ranks, fmt::format("{:020}", rank), patient);
        if (all.back() != fmt::format("{:020}", ranks - 1)) ++failed;
        line.arrive_and_wait();
        for (int i = 0; i < exchanges; ++i) client->exchange(fmt::format("case/{}", i), rank, ranks, "", patient);
        line.arrive_and_wait();
        const int neighbour = (rank + 1) % ranks;
        if (client->get(fmt::format("case/key/{}", neighbour), patient) != fmt::format("{:020}", neighbour)) ++failed;
        line.arrive_and_wait();
        client->leave();
        client.reset();
        line.arrive_and_wait();
      } catch (const std::exception& error) {
        fmt::print(stderr, "rank {}: {}\n", rank, error.what());
        std::_Exit(1);
      }
    });
  for (auto& thread : threads) thread.join();
  return failed == 0 ? 0 : 1;
}
