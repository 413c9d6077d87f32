// Small values that the ranks tell each other outside the steps, through the case's key-value service: what a
// verification compares.
#pragma once
#include <assay/comm/communicator.hpp>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay::comm {

// The ranks' values in their order. Every rank calls it, once per name; it waits for the last one, timeout_ms at most
// (0: the case's). Throws assay::Error(COMM_ERROR).
template <class T>
std::vector<T> exchange(const Host& host, std::string_view name, const T& mine, std::int64_t timeout_ms = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  const assay_comm& ranks = ranks_of(host);
  std::vector<T> all(static_cast<std::size_t>(ranks.rank_count));
  const assay_status status = ranks.exchange(&ranks, to_abi(name), timeout_ms > 0 ? timeout_ms : ranks.timeout_ms,
                                             &mine, sizeof mine, all.data());
  if (status != ASSAY_OK) throw Error(status, "");  // the host has the text
  return all;
}

}  // namespace assay::comm
