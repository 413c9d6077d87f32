// Batches for training: worker threads read samples ahead of need into the slots of a compute::Feed, which copies them
// to the device on a separate stream.
//
// Order. An epoch has an order of all samples, which depends only on (seed, epoch, number of samples, run length). Step
// k of the epoch takes the next batch_size * ranks of them, each rank its batch_size in turn: no sample is used twice,
// each rank gets as many, and a step trains on the same set for any number of ranks. Samples that do not fill a batch
// on every rank are dropped.
//
// Shuffled, the order consists of runs: `run_samples` samples that follow one another in the data set stay together, so
// that a disk (or the page cache) is read 64 KiB at a time and not sample by sample. The source learns of this rank's
// next 4 MiB ahead of time (SampleSource::expect), so that a disk always has many to fetch. Runs are permuted
// pseudo-randomly in each epoch, and begin at another sample each epoch, so that other samples become neighbours. A run
// is never more than an eighth of a step's samples; run_samples = 1 shuffles single samples.
//
// Threads: all calls by the backend's thread, outside of a capture and of Mode::prepare.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/data/samples.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace assay::data {

struct LoaderConfig {
  std::int64_t batch_size = 1;  // samples, of this rank
  std::int64_t rank = 0, ranks = 1;
  int workers = 1;            // threads that read, all of them at the oldest batch that is missing; at least 1
  std::int64_t prefetch = 2;  // batches read ahead; at least 1
  bool shuffle = true;
  std::int64_t run_samples = 0;  // 0: 64 KiB, at least 1 sample, at most an eighth of batch_size * ranks
  std::uint64_t seed = 0;
};

struct LoaderTotals {
  std::int64_t batches = 0;
  double wait_ms = 0;       // next() blocked because the batch was not there yet, on the host's clock
  double read_ms = 0;       // workers spent reading, summed over them
  std::uint64_t bytes = 0;  // size of the samples delivered
};

class Loader {
 public:
  // int64 elements of a batch of `batch` samples, as it lies in a slot and on the device:
  //   source [batch, S], then target inputs [batch, S - 1] (target without its last token), then labels [batch, S - 1]
  //   (target without its first).
  static std::int64_t batch_elements(const SampleShape& shape, std::int64_t batch) {
    return batch * (3 * shape.sequence_length - 2);
  }
  static std::size_t batch_bytes(const SampleShape& shape, std::int64_t batch) {
    return static_cast<std::size_t>(batch_elements(shape, batch)) * sizeof(std::int64_t);
  }
  static std::size_t slots(const LoaderConfig& config) { return static_cast<std::size_t>(config.prefetch) + 1; }
  static std::size_t device_bytes(const SampleShape& shape, const LoaderConfig& config);  // for the feed, data memory

  // `source` and `backend` must outlive it. device_memory: device_bytes(). Starts the workers, at epoch 0. Throws
  // assay::Error; INVALID_ARGUMENT when the configuration cannot be, or an epoch has not one whole batch for each rank.
  Loader(const SampleSource& source, const LoaderConfig& config, compute::Backend& backend, void* device_memory);
  // The same with a feed of slots() slots of batch_bytes() each.
  Loader(const SampleSource& source, const LoaderConfig& config, std::unique_ptr<compute::Feed> feed);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();  // ends the workers, at any time

  std::int64_t batches_per_epoch() const;
  // The next batch is the first of epoch `epoch` (0 or more). What was read ahead is dropped, unless the next batch was
  // to be that one anyway: after an epoch's last batch this costs nothing.
  void start_epoch(std::int64_t epoch);
  // Waits for the next batch, and enqueues its delivery into `batch` (i64, contiguous, batch_elements). After an
  // epoch's last batch comes the next epoch's first, read ahead like any other. Rethrows what reading this batch threw,
  // also when called again.
  void next(const compute::Tensor& batch);
  // The batch that the last next() must have delivered, by seed and order, made again from `source` on the caller's
  // thread: a verification compares it with the data on the device. `source` has as many samples of the same shape as
  // the loader's. Throws INTERNAL before the first next(), and exceptions of reading.
  std::vector<std::int64_t> last_batch(const SampleSource& source) const;
  LoaderTotals take_totals();  // since the last call

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace assay::data
