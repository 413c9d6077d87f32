// Pairs of token sequences to train a translation model on: synthetic, made where they are needed, or read from shards.
//
// A sample is `2 * sequence_length` int64 tokens: source, then target, each in [0, vocab_size). Its content depends
// only on (seed, index), not on the rank, the number of workers, or whether it came from memory or from a file that was
// generated with the same parameters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::data {

struct SampleShape {
  std::int64_t sequence_length = 256;
  std::int64_t vocab_size = 8192;
  std::int64_t tokens() const { return 2 * sequence_length; }
  std::size_t bytes() const { return static_cast<std::size_t>(tokens()) * sizeof(std::int64_t); }
};

class SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;
  virtual SampleShape shape() const = 0;
  virtual std::int64_t samples() const = 0;
  // Sample `index` and those after it into `out`, whose size is a multiple of shape().tokens(): as many as fit. All of
  // them must exist. Any thread, several at once. Throws assay::Error.
  virtual void read(std::int64_t index, std::span<std::int64_t> out) const = 0;
  // These existing samples will be read soon, so a source on a disk may begin to fetch them. Does not wait, promises
  // nothing, never fails. Any thread, several at once.
  virtual void expect(std::int64_t /*index*/, std::int64_t /*count*/) const {}
};

// Counter-based (Philox 4x32-10): uniform tokens, nothing stored. Token i of sample n is element i of what
// compute::Backend::random_integers makes of (seed, stream 2^62 + n) in [0, vocab_size).
class SyntheticSamples : public SampleSource {
 public:
  // Throws INVALID_ARGUMENT: sequence_length and vocab_size are at least 1, samples at least 0.
  SyntheticSamples(const SampleShape& shape, std::int64_t samples, std::uint64_t seed);
  SampleShape shape() const override { return shape_; }
  std::int64_t samples() const override { return samples_; }
  void read(std::int64_t index, std::span<std::int64_t> out) const override;

 private:
  SampleShape shape_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

}  // namespace assay::data
