// Small values that the ranks exchange outside the steps, through the case's key-value service, for verifications to
// compare.
#pragma once
#include <assay/comm/communicator.hpp>
#include <cstddef>
#include <span>
#include <string>
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

// The mean of the ranks' values, on all of them, as above.
inline double mean_of_ranks(const Host& host, std::string_view name, double mine) {
  const std::vector<double> all = exchange(host, name, mine);
  double sum = 0;
  for (const double of_rank : all) sum += of_rank;
  return sum / static_cast<double>(all.size());
}

// The ranks' values on rank 0, in their order, `mine.size()` of each; nothing on the others, which do not wait. Every
// rank calls it, once per name, with as many values. For data that is too large to give to every rank: some MiB in all.
template <class T>
std::vector<std::vector<T>> gather(const Host& host, std::string_view name, std::span<const T> mine,
                                   std::int64_t timeout_ms = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  const assay_comm& ranks = ranks_of(host);
  const auto key_of = [&](std::int32_t rank) { return std::string(name) + "/" + std::to_string(rank); };
  const auto check = [](assay_status status) {
    if (status != ASSAY_OK) throw Error(status, "");  // the host has the text
  };
  if (ranks.rank != 0) {
    check(ranks.set(&ranks, to_abi(key_of(ranks.rank)), mine.data(), mine.size_bytes()));
    return {};
  }
  std::vector<std::vector<T>> all{{mine.begin(), mine.end()}};
  for (std::int32_t rank = 1; rank < ranks.rank_count; ++rank) {
    const std::string key = key_of(rank);
    std::vector<T>& of_rank = all.emplace_back(mine.size());
    std::size_t bytes = 0;
    check(ranks.get(&ranks, to_abi(key), timeout_ms > 0 ? timeout_ms : ranks.timeout_ms, of_rank.data(),
                    mine.size_bytes(), &bytes));
    if (bytes != mine.size_bytes())
      throw Error(ASSAY_INTERNAL, "rank " + std::to_string(rank) + " has given " + std::to_string(bytes) +
                                      " bytes of " + std::string(name) + ", and rank 0 " +
                                      std::to_string(mine.size_bytes()));
    check(ranks.set(&ranks, to_abi(key), nullptr, 0));  // the service need not keep it
  }
  return all;
}

}  // namespace assay::comm
