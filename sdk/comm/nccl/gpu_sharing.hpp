// Which ranks share a GPU, and which variables NCCL needs for it. NCCL refuses two ranks of one machine on one GPU,
// unless each claims a separate machine; then they communicate through sockets. That shows whether a workload is right,
// never how fast it is.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::comm::nccl {

// Where a rank's GPU is. Exchanged between the ranks byte by byte; texts end with a zero.
struct Place {
  char host[192] = {};      // name of the machine
  char boot[40] = {};       // id of its current boot: two machines may have one name
  char bus[24] = {};        // PCI bus id of the GPU: what NCCL compares within a machine
  std::uint8_t uuid[16]{};  // of the GPU: the same in every container
};

struct Sharing {
  std::int32_t most_on_one_gpu = 1;
  std::vector<std::pair<std::string, std::string>> environment;  // for this rank; variables that the user set stay
  std::string note;                                              // for the record; empty when no GPU is shared
};

Sharing decide_sharing(std::span<const Place> places, std::int32_t rank);

}  // namespace assay::comm::nccl
