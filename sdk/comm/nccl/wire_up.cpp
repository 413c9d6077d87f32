#include "wire_up.hpp"

#include <fmt/format.h>

#include <assay/plugin.hpp>
#include <utility>
#include <vector>

namespace assay::comm::nccl {
namespace {

// The host has the text of what went wrong in its own calls.
void check(assay_status status) {
  if (status != ASSAY_OK) throw Error(status, "");
}

std::vector<Place> exchange_places(const assay_comm& ranks, std::int64_t number, const Place& mine) {
  std::vector<Place> places(static_cast<std::size_t>(ranks.rank_count));
  const std::string name = fmt::format("nccl/{}/places", number);
  check(ranks.exchange(&ranks, to_abi(name), ranks.timeout_ms, &mine, sizeof mine, places.data()));
  return places;
}

UniqueId share_id(const assay_comm& ranks, std::int64_t number, Library& library) {
  UniqueId id{};
  const std::string key = fmt::format("nccl/{}/id", number);
  if (ranks.rank == 0) {
    if (const Answer answer = library.make_id(id); answer.kind == Answer::Kind::failed)
      throw Error(ASSAY_COMM_ERROR, "NCCL makes no id for a communicator: " + answer.text);
    check(ranks.set(&ranks, to_abi(key), id.data(), id.size()));
    return id;
  }
  std::size_t bytes = 0;
  check(ranks.get(&ranks, to_abi(key), ranks.timeout_ms, id.data(), id.size(), &bytes));
  if (bytes != id.size())
    throw Error(ASSAY_INTERNAL, fmt::format("the id of NCCL's communicator has {} bytes; expected {}: rank 0 runs "
                                            "another version of assay",
                                            bytes, id.size()));
  return id;
}

}  // namespace

WiredUp wire_up(std::unique_ptr<Library> library, const assay_comm& ranks, const Members& members, std::int64_t number,
                Stream compute, std::int32_t max_channels, void (*set_variable)(const char* name, const char* value),
                Timing timing, bool on_compute_stream) {
  const std::vector<Place> places = exchange_places(ranks, number, library->place(ranks.host_name));
  Sharing sharing = decide_sharing(places, ranks.rank);
  // NCCL reads them at its first call in the process, which is below.
  for (const auto& [name, value] : sharing.environment) set_variable(name.c_str(), value.c_str());
  const UniqueId id = share_id(ranks, number, *library);
  return {Session::open(std::move(library), ranks, members, compute, id, max_channels, timing, on_compute_stream),
          std::move(sharing.note)};
}

}  // namespace assay::comm::nccl
