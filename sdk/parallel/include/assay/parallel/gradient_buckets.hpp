// Decides which pieces of the gradient arena are communicated together, and when each of them may start.
//
// The arena lies in the order in which backward finishes its gradients, so that a bucket is a range of it: nothing is
// copied, and buckets become ready one after the other, in their order.
#pragma once
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay::parallel {

struct BucketOptions {
  std::size_t first_bytes = std::size_t{1} << 20;  // small, so that communication starts early in backward
  std::size_t bytes = std::size_t{25} << 20;       // the size of every other bucket
  // If it is less than `bytes`, buckets shrink towards the end of backward, which cannot hide the averages of the last
  // one: each takes half of the remaining arena, from at most `bytes` down to this.
  std::size_t last_bytes = bytes;
  // 0: a bucket ends with the first group of parameters that fills it, so it may exceed the requested size by less than
  // a group. Else: at a multiple of this many elements, whatever parameter lies there, and never above the requested
  // size, unless one multiple is. The arena must then be padded to it (ParameterSet::pad_to).
  std::int64_t multiple = 0;
};

// Buckets of this many bytes, which shrink to `last_bytes`, or, with 0, do not. The first one is no larger than they
// are.
BucketOptions bucket_options(std::size_t bytes, std::size_t last_bytes = 0, std::int64_t multiple = 0);

// The whole gradient arena, padding included, in buckets. Bytes are those of the gradients' dtype. Throws
// assay::Error(INVALID_ARGUMENT) when the arena is not a multiple of options.multiple.
std::vector<train::ElementRange> plan_buckets(const train::ParameterSet& set, const BucketOptions& options);

// The same without `own`, ranges of whole groups in ascending order that only this rank has (its experts), between what
// all have. A bucket ends where such a range begins.
std::vector<train::ElementRange> plan_shared_buckets(const train::ParameterSet& set,
                                                     const std::vector<train::ElementRange>& own,
                                                     const BucketOptions& options);

// The gradients of each parameter on its own, without the gaps between groups.
std::vector<train::ElementRange> parameter_ranges(const train::ParameterSet& set);

// Where ranges begin.
std::vector<std::int64_t> begins_of(const std::vector<train::ElementRange>& ranges);

// The `rank`-th of `ranks` equal parts of a range whose elements they divide.
inline train::ElementRange shard_of(const train::ElementRange& range, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t n = range.elements() / ranks;
  return {range.begin + rank * n, range.begin + (rank + 1) * n};
}

// Calls `start` with the index of each bucket as soon as its gradients are enqueued. Does not allocate in a step.
class ReadyBuckets : public train::GradientListener {
 public:
  // The set must outlive it. The buckets must be in ascending order.
  ReadyBuckets(const train::ParameterSet& set, std::vector<train::ElementRange> buckets,
               std::function<void(std::size_t)> start)
      : set_(set), buckets_(std::move(buckets)), start_(std::move(start)) {}

  const std::vector<train::ElementRange>& buckets() const { return buckets_; }
  void begin_step() { next_ = 0; }  // before each backward
  void gradients_ready(train::ParameterSet::Id end) override {
    const std::int64_t ready = set_.elements_before(end);
    while (next_ < buckets_.size() && buckets_[next_].end <= ready) start_(next_++);
  }

 private:
  const train::ParameterSet& set_;
  std::vector<train::ElementRange> buckets_;
  std::function<void(std::size_t)> start_;
  std::size_t next_ = 0;
};

}  // namespace assay::parallel
