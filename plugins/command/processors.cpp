#include "processors.hpp"

#include <assay/comm.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace command {
namespace {

// A rank sends this to the others. On machines with more processors than a set has, those within it stand for all.
struct Usable {
  char machine[64] = {};
  cpu_set_t processors;
};

// Reads the quota of the control group that this process sees as the outermost: a container's own.
double quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double most_us = 0, of_us = 0;
  return file >> most_us >> of_us && most_us > 0 && of_us > 0 ? most_us / of_us : 1e9;  // "max 100000": none
}

bool share_some(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) > 0;
}

}  // namespace

Share share_of_processors(const assay::Host& host) {
  Usable own;
  CPU_ZERO(&own.processors);
  if (sched_getaffinity(0, sizeof own.processors, &own.processors) != 0) CPU_SET(0, &own.processors);
  Share share{std::min<double>(CPU_COUNT(&own.processors), quota()), 1};
  const auto* comm = host.extension<assay_comm>(ASSAY_EXT_COMM);
  if (!comm || comm->rank_count == 1) return share;
  std::strncpy(own.machine, comm->host_name, sizeof own.machine - 1);
  std::vector<Usable> all(static_cast<std::size_t>(comm->rank_count));
  const std::string name = "command/processors";
  const assay_status status =
      comm->exchange(comm, {name.data(), name.size()}, comm->timeout_ms, &own, sizeof own, all.data());
  if (status != ASSAY_OK) throw assay::Error(status, "");  // the host has the text
  share.ranks = static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Usable& other) {
    return std::strcmp(other.machine, own.machine) == 0 && share_some(other.processors, own.processors);
  }));
  return share;
}

}  // namespace command
