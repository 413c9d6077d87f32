// Which samples does a step train on? The rule of assay/data once more, for what lies on a device to be held against;
// this shares no code with the loader, its order or its generator.
//
// Samples. Token i of sample n, the source's first and then the target's, is floor(vocabulary * u / 2^64), where u are
// the 64 bits of word pair i mod 2 of Philox block floor(i / 2) of (seed, stream 2^62 + n).
//
// Order. An epoch has a permutation of all samples. Unshuffled it is the identity. Shuffled, the whole runs of `run`
// places are permuted among each other, what remains stays at the end, and all indices move on by an offset, modulo the
// number of samples.
//   offset       floor(samples * u / 2^64), u = word pair 0 of block 0 of (seed, stream 7 * 2^60 + epoch)
//   permutation  a Feistel network of 12 rounds over 2 h bits, the fewest that hold the number of runs, walked until it
//                lands among them. Round r maps (left, right) to (right, left ^ low h bits of mix(right + key r)); mix
//                is the finaliser of SplitMix64 without its increment, and key r is word pair r of (seed, stream 3 *
//                2^61 + epoch), pairs counted through the blocks. Places 0 and 1 are swapped first where bit 0 of the
//                first word beyond the keys is set and there is more than one run.
//
// Batches. Step k of an epoch takes the places from k * ranks * batch size on, each rank its batch size in turn; what
// does not fill a batch on every rank is dropped, and the next epoch follows. Source, target without its last token,
// and labels, which are the target without its first, lie one after the other, each for the whole batch.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::verification {

struct SampleRule {
  std::int64_t sequence_length = 0, vocabulary = 0, samples = 0;
  std::int64_t batch_size = 0, rank = 0, ranks = 1;
  bool shuffle = true;
  std::uint64_t seed = 0;

  std::int64_t steps_of_epoch() const { return samples / (batch_size * ranks); }
  std::int64_t run() const;  // 64 KiB of samples, at least one, at most an eighth of a step's
};

std::vector<std::int64_t> expected_sample(const SampleRule& rule, std::int64_t index);  // source, then target
std::int64_t expected_index(const SampleRule& rule, std::int64_t epoch, std::int64_t place);
// Of the step that has had so many before it, counted through the epochs.
std::vector<std::int64_t> expected_batch(const SampleRule& rule, std::int64_t steps_before);

}  // namespace assay::verification
