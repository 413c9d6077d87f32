// Processes that take themselves for separate machines: each has a name and a network with one device, whose packets
// come out of a file of this process, and what is written to that file comes in. Nothing of it outlives the processes.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace assay::slow_wire {

constexpr std::size_t most_hosts = 250 * 250;
constexpr unsigned meeting_port = 29500;  // of host 0, where the ranks meet

std::string address_of(std::size_t host);  // IPv4; of host 0 10.77.0.1
// The host with that address in network byte order; `most_hosts` where there is none.
std::size_t host_of_address(const unsigned char address[4]);

struct Host {
  pid_t process = -1;
  int packets = -1;  // a TUN device without heads: one packet a read or write; does not block
};

struct HostOptions {
  std::size_t packet_bytes = 1500;   // the largest
  std::vector<std::string> command;  // what each process is, with ASSAY_RANK, ASSAY_RANKS and ASSAY_RENDEZVOUS
};

// Starts all of them, and returns when each has its network and goes on to its command. They end with this process.
// Throws std::system_error, whose text names what could not be done.
std::vector<Host> start_hosts(std::size_t count, const HostOptions& options);

}  // namespace assay::slow_wire
