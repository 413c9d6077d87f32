#include "slow_wire/hosts.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace assay::slow_wire {
namespace {

constexpr const char* device_name = "wire0";
constexpr int waiting_packets = 10000;  // in the kernel, for this process to read them
constexpr std::size_t hosts_of_a_block = 250;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

void write_setting(const std::string& file, const char* value) {
  const int f = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (f < 0 || write(f, value, std::strlen(value)) < 0) fail(fmt::format("cannot set {} to {}", file, value));
  close(f);
}

ifreq request_of(const char* device) {
  ifreq request{};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
  return request;
}

void set_address(int socket, unsigned long what, const std::string& address) {
  ifreq request = request_of(device_name);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &in.sin_addr);
  std::memcpy(&request.ifr_addr, &in, sizeof in);
  if (ioctl(socket, what, &request) != 0) fail(fmt::format("cannot set the address {} of {}", address, device_name));
}

void bring_up(int socket, const char* device) {
  ifreq request = request_of(device);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) fail(fmt::format("cannot bring up the network device {}", device));
}

// Queues of this wire hold seconds of data, which a connection must not take for a loss; and nothing is ever lost here.
// Nor does a connection forget between two steps what it could carry, since these pauses are long here alone.
// The first of the settings came with Linux 6.11.
void set_up_tcp() {
  const std::string ipv4 = "/proc/sys/net/ipv4/";
  write_setting(ipv4 + "tcp_rto_min_us", "30000000");
  write_setting(ipv4 + "tcp_early_retrans", "0");
  write_setting(ipv4 + "tcp_congestion_control", "reno");
  write_setting(ipv4 + "tcp_slow_start_after_idle", "0");
  if (access("/proc/sys/net/ipv6/conf/all/disable_ipv6", F_OK) == 0)
    write_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
}

// A network of this process alone. The file of its device.
int make_network(std::size_t host, const HostOptions& options) {
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0) fail("cannot make a network namespace; this needs root");
  const std::string name = fmt::format("wire-{:02}", host);
  if (sethostname(name.c_str(), name.size()) != 0) fail("cannot set the host's name");
  set_up_tcp();
  const int packets = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (packets < 0) fail("cannot open /dev/net/tun");
  ifreq request = request_of(device_name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(packets, TUNSETIFF, &request) != 0) fail("cannot make a TUN device");
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("cannot make a socket");
  set_address(socket, SIOCSIFADDR, address_of(host));
  set_address(socket, SIOCSIFNETMASK, "255.255.0.0");
  request = request_of(device_name);
  request.ifr_mtu = static_cast<int>(options.packet_bytes);
  if (ioctl(socket, SIOCSIFMTU, &request) != 0)
    fail(fmt::format("packets of {} bytes are refused", options.packet_bytes));
  request = request_of(device_name);
  request.ifr_qlen = waiting_packets;
  if (ioctl(socket, SIOCSIFTXQLEN, &request) != 0) fail("cannot set the length of the queue");
  bring_up(socket, "lo");
  bring_up(socket, device_name);
  close(socket);
  return packets;
}

// A byte and a file through a socket between processes.
void send_file(int socket, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(head), &file, sizeof file);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) fail("cannot hand over the network device");
}

int receive_file(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const head = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!head) throw std::runtime_error("a host has no network, as said above");
  int file = -1;
  std::memcpy(&file, CMSG_DATA(head), sizeof file);
  return file;
}

void set_variables(std::size_t host, std::size_t count) {
  setenv("ASSAY_RANK", std::to_string(host).c_str(), 1);
  setenv("ASSAY_RANKS", std::to_string(count).c_str(), 1);
  setenv("ASSAY_RENDEZVOUS", fmt::format("{}:{}", address_of(0), meeting_port).c_str(), 1);
}

// In the process of the host, which it becomes.
[[noreturn]] void be_host(std::size_t host, std::size_t count, const HostOptions& options, int socket, int gate) try {
  const int packets = make_network(host, options);
  send_file(socket, packets);
  close(packets), close(socket);
  // All have their networks when the gate's other end is closed.
  char byte = 0;
  if (read(gate, &byte, 1) != 0) fail("cannot wait for the other hosts");
  set_variables(host, count);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // What the first one shows is enough; errors of all are.
  if (host > 0 && !std::freopen("/dev/null", "w", stdout)) fail("cannot open /dev/null");
  execvp(words[0], words.data());
  fail("cannot start " + options.command[0]);
} catch (const std::exception& e) {
  fmt::print(stderr, "slow_wire: host {}: {}\n", host, e.what());
  _exit(127);
}

}  // namespace

std::string address_of(std::size_t host) {
  return fmt::format("10.77.{}.{}", host / hosts_of_a_block, host % hosts_of_a_block + 1);
}

std::size_t host_of_address(const unsigned char address[4]) {
  if (address[0] != 10 || address[1] != 77 || address[2] >= hosts_of_a_block || address[3] < 1 ||
      address[3] > hosts_of_a_block)
    return most_hosts;
  return address[2] * hosts_of_a_block + address[3] - 1;
}

std::vector<Host> start_hosts(std::size_t count, const HostOptions& options) {
  const pid_t parent = getpid();
  int gate[2];
  if (pipe2(gate, O_CLOEXEC) != 0) fail("cannot make a pipe");
  std::vector<Host> hosts;
  for (std::size_t host = 0; host < count; ++host) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) fail("cannot make a socket");
    const pid_t process = fork();
    if (process < 0) fail("cannot start a process");
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
      close(gate[1]), close(sockets[0]);
      be_host(host, count, options, sockets[1], gate[0]);
    }
    close(sockets[1]);
    hosts.push_back({process, receive_file(sockets[0])});
    close(sockets[0]);
  }
  close(gate[0]), close(gate[1]);
  return hosts;
}

}  // namespace assay::slow_wire
