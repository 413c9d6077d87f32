// The order in which an epoch takes the samples, as a function: no list of a hundred million numbers is made, and any
// thread may ask for any place.
#pragma once
#include <array>
#include <cstdint>

namespace assay::data {

// A pseudo-random permutation of [0, size): a Feistel network over the next even number of bits, walked until it lands
// inside, which takes fewer than four walks on average.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream);
  std::int64_t operator()(std::int64_t place) const;

 private:
  static constexpr int rounds = 12;  // with 8 an order of five still shows a bias
  std::uint64_t size_;
  int half_bits_;
  std::uint64_t swap_;  // 1: places 0 and 1 are swapped
  std::array<std::uint64_t, rounds> keys_;
};

// Place -> index, each sample once. Runs of `run` consecutive samples (counted around the end) are permuted; the
// samples beyond the last whole run come last, and which those are changes from epoch to epoch.
class EpochOrder {
 public:
  EpochOrder(std::int64_t samples, std::int64_t run, bool shuffle, std::uint64_t seed, std::int64_t epoch);
  std::int64_t index(std::int64_t place) const;
  // Places from this one on, it included, that hold samples in the order of the data set: to the end of its run, or of
  // the data set. Not more than a run.
  std::int64_t together(std::int64_t place) const;

 private:
  std::int64_t samples_, run_, runs_, offset_;
  bool shuffle_;
  Permutation permutation_;
};

}  // namespace assay::data
