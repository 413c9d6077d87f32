#include "gpu_sharing.hpp"

#include <algorithm>
#include <cstring>

namespace assay::comm::nccl {
namespace {

bool same_machine(const Place& a, const Place& b) {
  return std::strcmp(a.host, b.host) == 0 && std::strcmp(a.boot, b.boot) == 0;
}

// By the id of the GPU, or by what NCCL itself compares.
bool same_gpu(const Place& a, const Place& b) {
  return std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0 || (same_machine(a, b) && std::strcmp(a.bus, b.bus) == 0);
}

}  // namespace

Sharing decide_sharing(std::span<const Place> places, std::int32_t rank) {
  Sharing sharing;
  for (const Place& place : places) {
    const auto ranks_on_it =
        std::count_if(places.begin(), places.end(), [&](const Place& other) { return same_gpu(place, other); });
    sharing.most_on_one_gpu = std::max(sharing.most_on_one_gpu, static_cast<std::int32_t>(ranks_on_it));
  }
  if (sharing.most_on_one_gpu == 1) return sharing;

  // On every rank, also if it does not share its GPU: the transport has to be the same at both ends.
  const Place& mine = places[static_cast<std::size_t>(rank)];
  sharing.environment = {{"NCCL_HOSTID", std::string(mine.host) + "-" + std::to_string(rank)},
                         {"NCCL_NET", "Socket"},
                         {"NCCL_IB_DISABLE", "1"},
                         {"NCCL_MNNVL_ENABLE", "0"}};
  if (std::all_of(places.begin(), places.end(), [&](const Place& other) { return same_machine(mine, other); }))
    sharing.environment.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  sharing.note = std::to_string(sharing.most_on_one_gpu) + " ranks share a GPU: through sockets, for correctness only";
  return sharing;
}

}  // namespace assay::comm::nccl
