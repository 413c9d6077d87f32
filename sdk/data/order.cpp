#include "order.hpp"

#include <algorithm>

#include "philox.hpp"

namespace assay::data {
namespace {

// Streams of the loader's seed: one for each epoch, and for each of its two uses.
constexpr std::uint64_t permutation_stream = std::uint64_t{3} << 61;
constexpr std::uint64_t offset_stream = std::uint64_t{7} << 60;

// The finaliser of SplitMix64: each bit of the result depends on each of x.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::int64_t random_offset(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  __extension__ typedef unsigned __int128 Wide;
  PhiloxTile word;
  philox_tile(seed, offset_stream + static_cast<std::uint64_t>(epoch), 0, word);
  const std::uint64_t bits = word[0] | static_cast<std::uint64_t>(word[1]) << 32;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(Wide(bits) * static_cast<std::uint64_t>(samples) >> 64));
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)), half_bits_(1), swap_(0), keys_{} {
  while ((std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  PhiloxTile word;
  philox_tile(seed, stream, 0, word);
  // Such a network makes even permutations alone, which shows where there are few elements: a coin makes half of them
  // odd.
  swap_ = size > 1 ? word[2 * rounds] & 1 : 0;
  for (std::size_t r = 0; r < rounds; ++r) keys_[r] = word[2 * r] | static_cast<std::uint64_t>(word[2 * r + 1]) << 32;
}

std::int64_t Permutation::operator()(std::int64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(place);
  if (x < 2) x ^= swap_;
  do {
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mixed(right + key) & mask);
      left = right, right = next;
    }
    x = left << half_bits_ | right;
  } while (x >= size_);
  return static_cast<std::int64_t>(x);
}

EpochOrder::EpochOrder(std::int64_t samples, std::int64_t run, bool shuffle, std::uint64_t seed, std::int64_t epoch)
    : samples_(samples),
      run_(run),
      runs_(samples / run),
      offset_(shuffle ? random_offset(samples, seed, epoch) : 0),
      shuffle_(shuffle),
      permutation_(runs_, seed, permutation_stream + static_cast<std::uint64_t>(epoch)) {}

std::int64_t EpochOrder::index(std::int64_t place) const {
  if (!shuffle_) return place;
  const std::int64_t run = place / run_;
  const std::int64_t unrotated = run < runs_ ? permutation_(run) * run_ + place % run_ : place;
  const std::int64_t index = unrotated + offset_;
  return index < samples_ ? index : index - samples_;
}

std::int64_t EpochOrder::together(std::int64_t place) const {
  const std::int64_t to_end_of_run = std::min(run_ - place % run_, samples_ - place);
  return std::min(to_end_of_run, samples_ - index(place));
}

}  // namespace assay::data
