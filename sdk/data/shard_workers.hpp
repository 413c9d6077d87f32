// Work on all shards of a data set by several threads, told to the one that waits.
#pragma once
#include <assay/data/shards.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace assay::data {

// What a worker tells: how many bytes it has dealt with. False: give up, somebody has failed.
using Tell = std::function<bool(std::uint64_t bytes)>;

// work(i, tell) for each i below `shards`, by several threads. `progress` is called by this thread, with the bytes told
// so far of `total`. Rethrows the first error of a worker, or what `progress` threw, when all threads have ended.
void for_each_shard(std::size_t shards, std::uint64_t total, const Progress& progress,
                    const std::function<void(std::size_t shard, const Tell& tell)>& work);

}  // namespace assay::data
