#include "assay/verification/expected_samples.hpp"

#include <algorithm>

#include "counter_random.hpp"

namespace assay::verification {
namespace {

constexpr std::int64_t bytes_of_run = 64 * 1024, bytes_of_token = 8;
constexpr std::uint64_t stream_of_samples = std::uint64_t{1} << 62;
constexpr std::uint64_t stream_of_keys = 3 * (std::uint64_t{1} << 61);
constexpr std::uint64_t stream_of_offsets = 7 * (std::uint64_t{1} << 60);
constexpr std::size_t rounds = 12;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

// Where a run goes among `count` of them.
std::uint64_t permuted(std::uint64_t run, std::uint64_t count, std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t side = 2;  // 2^h
  while (side * side < count) side *= 2;
  if (count > 1 && run < 2 && philox_block(seed, stream, rounds / 2)[0] % 2 == 1) run = 1 - run;
  do {
    std::uint64_t left = run / side, right = run % side;
    for (std::size_t r = 0; r < rounds; ++r) {
      const std::uint64_t key = philox_bits(seed, stream, r / 2, r % 2);
      const std::uint64_t crossed = left ^ mix(right + key) % side;
      left = right;
      right = crossed;
    }
    run = left * side + right;
  } while (run >= count);
  return run;
}

}  // namespace

std::int64_t SampleRule::run() const {
  const std::int64_t in_64_kib = bytes_of_run / (2 * sequence_length * bytes_of_token);
  return std::max<std::int64_t>(1, std::min(in_64_kib, batch_size * ranks / 8));
}

std::vector<std::int64_t> expected_sample(const SampleRule& rule, std::int64_t index) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < 2 * rule.sequence_length; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const std::uint64_t bits =
        philox_bits(rule.seed, stream_of_samples + static_cast<std::uint64_t>(index), at / 2, at % 2);
    tokens.push_back(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(rule.vocabulary), bits)));
  }
  return tokens;
}

std::int64_t expected_index(const SampleRule& rule, std::int64_t epoch, std::int64_t place) {
  if (!rule.shuffle) return place;
  const auto number = static_cast<std::uint64_t>(epoch), samples = static_cast<std::uint64_t>(rule.samples);
  const auto run = static_cast<std::uint64_t>(rule.run()), at = static_cast<std::uint64_t>(place);
  const std::uint64_t whole_runs = samples / run;
  const bool is_in_whole_run = at < whole_runs * run;
  const std::uint64_t moved =
      is_in_whole_run ? permuted(at / run, whole_runs, rule.seed, stream_of_keys + number) * run + at % run : at;
  const std::uint64_t offset = below(samples, philox_bits(rule.seed, stream_of_offsets + number, 0, 0));
  return static_cast<std::int64_t>((moved + offset) % samples);
}

std::vector<std::int64_t> expected_batch(const SampleRule& rule, std::int64_t steps_before) {
  const std::int64_t epoch = steps_before / rule.steps_of_epoch(), step = steps_before % rule.steps_of_epoch();
  std::vector<std::int64_t> sources, inputs, labels;
  for (std::int64_t i = 0; i < rule.batch_size; ++i) {
    const std::int64_t place = (step * rule.ranks + rule.rank) * rule.batch_size + i;
    const std::vector<std::int64_t> sample = expected_sample(rule, expected_index(rule, epoch, place));
    const auto target = sample.begin() + static_cast<std::ptrdiff_t>(rule.sequence_length);
    sources.insert(sources.end(), sample.begin(), target);
    inputs.insert(inputs.end(), target, sample.end() - 1);
    labels.insert(labels.end(), target + 1, sample.end());
  }
  sources.insert(sources.end(), inputs.begin(), inputs.end());
  sources.insert(sources.end(), labels.begin(), labels.end());
  return sources;
}

}  // namespace assay::verification
