// Placements that this process has found, by all that they depend on: a sweep over what changes no shape, as a learning
// rate, places the same buffers again and again. Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace assay::train {

class RememberedPlacements {
 public:
  using Key = std::vector<std::uint64_t>;
  struct Placed {
    std::vector<std::size_t> offsets;
    std::size_t total;
  };

  std::optional<Placed> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = placed_.find(key);
    return found == placed_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(Key key, Placed placed) {
    const std::lock_guard lock(mutex_);
    if (placed_.size() >= most) placed_.clear();  // a few KiB each
    placed_.emplace(std::move(key), std::move(placed));
  }

 private:
  static constexpr std::size_t most = 512;
  std::mutex mutex_;
  std::map<Key, Placed> placed_;
};

}  // namespace assay::train
