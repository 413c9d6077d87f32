// Several threads work on all shards of a data set and report to the one that waits.
#pragma once
#include <assay/data/shards.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace assay::data {

// A worker reports how many bytes it has dealt with. False: give up, somebody has failed.
using Tell = std::function<bool(std::uint64_t bytes)>;

// Calls work(i, tell) for each i below `shards`, by several threads. This thread calls `progress` with the bytes
// reported so far and `total`. When all threads have ended, it rethrows the first error of a worker, or what `progress`
// threw.
void for_each_shard(std::size_t shards, std::uint64_t total, const Progress& progress,
                    const std::function<void(std::size_t shard, const Tell& tell)>& work);

}  // namespace assay::data
