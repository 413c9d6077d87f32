// Runs a command once on each of several hosts, which are processes with a network namespace each, joined by a wire of
// known latency and bandwidth that this program is. For what is to be seen of a network where there is none, and no
// netem in the kernel: it needs Linux with TUN devices, and root.
//
//   assay_slow_wire --hosts 64 --latency-ms 20 --mbytes-per-s 0.25 -- assay run x.toml
//
// What goes to or from the port at which ranks meet is not delayed, as if it had its own network: while a case is
// set up that is megabytes to each rank.
//
// The command finds ASSAY_RANK, ASSAY_RANKS and ASSAY_RENDEZVOUS set, and its own host name; of what it prints
// host 0's is shown, and all errors. Exits with host 0's code. At the end it says what the wire has carried, and by how
// much packets were late because this program did not have the processor: the measure of what the figures are worth.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "slow_wire/hosts.hpp"
#include "slow_wire/schedule.hpp"

namespace {

using namespace assay::slow_wire;

constexpr double ns_of_a_ms = 1e6, ns_of_a_s = 1e9;
constexpr std::size_t largest_packet_bytes = 65535;
constexpr std::size_t ip_head_bytes = 20, receiver_at = 16, protocol_at = 9;  // of IPv4 without options
constexpr const char* usage =
    "usage: assay_slow_wire --hosts N --latency-ms MS --mbytes-per-s MB [--packet-bytes 1500] "
    "[--limit-s 600] -- COMMAND [WORD ...]";

struct Options {
  std::size_t hosts = 0;
  Wire wire;
  HostOptions host;
  double limit_s = 600;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of an IPv4 packet of at least a head's size.
std::size_t receiver_of(const char* packet) {
  unsigned char address[4];
  std::memcpy(address, packet + receiver_at, sizeof address);
  return host_of_address(address);
}
bool is_of_meeting(const char* packet, std::size_t bytes) {
  constexpr char tcp = 6;
  if (packet[protocol_at] != tcp || bytes < ip_head_bytes + 4) return false;
  const auto port_at = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(packet[at])) << 8 |
           static_cast<unsigned char>(packet[at + 1]);
  };
  return port_at(ip_head_bytes) == meeting_port || port_at(ip_head_bytes + 2) == meeting_port;
}

class Carrier {
 public:
  Carrier(const Options& options, const std::vector<Host>& hosts)
      : hosts_(hosts), schedule_(options.wire, hosts.size()), queue_(epoll_create1(EPOLL_CLOEXEC)) {
    if (queue_ < 0) throw std::system_error(errno, std::generic_category(), "cannot wait for packets");
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = host;
      if (epoll_ctl(queue_, EPOLL_CTL_ADD, hosts[host].packets, &event) != 0)
        throw std::system_error(errno, std::generic_category(), "cannot wait for packets of a host");
    }
  }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  ~Carrier() { close(queue_); }

  // Carries what is to be carried until then.
  void carry_until(std::int64_t end_ns) {
    while (true) {
      deliver(now_ns());
      const std::int64_t now = now_ns();
      if (now >= end_ns) return;
      const std::int64_t next = std::min(end_ns, schedule_.next_ns());
      const std::int64_t wait_ns = std::max<std::int64_t>(0, next - now);
      const timespec wait{wait_ns / 1000000000, wait_ns % 1000000000};
      epoll_event ready[64];
      const int count = epoll_pwait2(queue_, ready, 64, &wait, nullptr);
      if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "cannot wait");
      for (int i = 0; i < count; ++i) take_from(static_cast<std::size_t>(ready[i].data.u64));
    }
  }

  void report() const {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto s = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    fmt::print(stderr,
               "slow_wire: carried {} packets, {:.1f} MB, {} refused by their receiver; late by {:.2f} ms in the mean, "
               "{:.1f} ms at most; {:.1f} s of processor\n",
               packets_, bytes_ * 1e-6, refused_, packets_ > 0 ? late_ns_ / packets_ / ns_of_a_ms : 0.0,
               latest_ns_ / ns_of_a_ms, s(used.ru_utime) + s(used.ru_stime));
  }

 private:
  void take_from(std::size_t host) {
    char packet[largest_packet_bytes];
    for (ssize_t bytes; (bytes = read(hosts_[host].packets, packet, sizeof packet)) > 0;) {
      const auto size = static_cast<std::size_t>(bytes);
      if (size < ip_head_bytes || packet[0] >> 4 != 4) continue;
      const std::size_t to = receiver_of(packet);
      if (to >= hosts_.size()) continue;
      if (is_of_meeting(packet, size)) {
        hand_over(to, packet, size);
        continue;
      }
      schedule_.send(host, to, {packet, packet + size}, now_ns());
    }
  }

  void deliver(std::int64_t now) {
    schedule_.advance(now, [&](std::size_t to, const Packet& packet, std::int64_t due_ns) {
      const auto late = static_cast<double>(now - due_ns);
      ++packets_, bytes_ += static_cast<double>(packet.size());
      late_ns_ += late, latest_ns_ = std::max(latest_ns_, late);
      hand_over(to, packet.data(), packet.size());
    });
  }

  void hand_over(std::size_t host, const char* packet, std::size_t bytes) {
    if (write(hosts_[host].packets, packet, bytes) < 0) ++refused_;
  }

  const std::vector<Host>& hosts_;
  Schedule schedule_;
  int queue_;
  double packets_ = 0, bytes_ = 0, late_ns_ = 0, latest_ns_ = 0;
  int refused_ = 0;
};

double number(std::string_view option, const char* text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*text == 0 || *end != 0 || !std::isfinite(value) || value < least)
    throw std::invalid_argument(fmt::format("{} is '{}'; expected a number from {}", option, text, least));
  return value;
}

Options options_of(int count, char** words) {
  Options options;
  bool has_latency = false, has_bandwidth = false;
  int at = 1;
  for (; at < count && std::string_view(words[at]) != "--"; ++at) {
    const std::string_view option = words[at];
    if (at + 1 == count) throw std::invalid_argument(fmt::format("{} has no value\n{}", option, usage));
    const char* const value = words[++at];
    if (option == "--hosts")
      options.hosts = static_cast<std::size_t>(number(option, value, 1));
    else if (option == "--latency-ms")
      options.wire.latency_ns = static_cast<std::int64_t>(number(option, value, 0) * ns_of_a_ms), has_latency = true;
    else if (option == "--mbytes-per-s")
      options.wire.ns_per_byte = 1e3 / number(option, value, 1e-3), has_bandwidth = true;
    else if (option == "--packet-bytes")
      options.host.packet_bytes = static_cast<std::size_t>(number(option, value, 100));
    else if (option == "--limit-s")
      options.limit_s = number(option, value, 1);
    else
      throw std::invalid_argument(fmt::format("'{}' is no option\n{}", option, usage));
  }
  for (++at; at < count; ++at) options.host.command.emplace_back(words[at]);
  if (options.hosts == 0 || options.hosts > most_hosts || !has_latency || !has_bandwidth ||
      options.host.command.empty())
    throw std::invalid_argument(usage);
  return options;
}

// Carries packets until the last host has ended, or the limit is over. Host 0's code, or 124.
int carry_for(const std::vector<Host>& hosts, const Options& options) {
  constexpr std::int64_t look_ns = 50'000'000;
  Carrier carrier(options, hosts);
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(options.limit_s * ns_of_a_s);
  std::size_t running = hosts.size();
  int code = 1;
  while (running > 0 && now_ns() < end_ns) {
    carrier.carry_until(now_ns() + look_ns);
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0; --running)
      if (ended == hosts[0].process) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  carrier.report();
  if (running == 0) return code;
  fmt::print(stderr, "slow_wire: {} of {} hosts had not ended after {:g} s and are killed\n", running, hosts.size(),
             options.limit_s);
  return 124;
}

}  // namespace

int main(int count, char** words) try {
  const Options options = options_of(count, words);
  const std::vector<Host> hosts = start_hosts(options.hosts, options.host);
  // The wire goes before what it carries. Without the right to that, lateness shows what it costs.
  const sched_param first{.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
    fmt::print(stderr, "slow_wire: has no right to go before other processes\n");
  return carry_for(hosts, options);
} catch (const std::invalid_argument& e) {
  fmt::print(stderr, "slow_wire: {}\n", e.what());
  return 2;
} catch (const std::exception& e) {
  fmt::print(stderr, "slow_wire: {}\n", e.what());
  return 1;
}
