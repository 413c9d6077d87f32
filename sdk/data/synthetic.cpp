#include <algorithm>
#include <assay/data/samples.hpp>
#include <assay/plugin.hpp>
#include <string>

#include "philox.hpp"

namespace assay::data {
namespace {

// Far from the streams that layers draw their weights and masks from, should one seed serve for all.
constexpr std::uint64_t first_stream = std::uint64_t{1} << 62;

void make_sample(std::span<std::int64_t> out, std::uint64_t seed, std::uint64_t index, std::uint64_t vocabulary) {
  __extension__ typedef unsigned __int128 Wide;
  constexpr std::size_t tile_tokens = 2 * philox_tile_blocks;  // 64 random bits a token
  PhiloxTile word;
  for (std::size_t i = 0; i < out.size(); i += tile_tokens) {
    philox_tile(seed, first_stream + index, i / 2, word);
    const std::size_t n = std::min(tile_tokens, out.size() - i);
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint64_t bits = word[2 * j] | static_cast<std::uint64_t>(word[2 * j + 1]) << 32;
      out[i + j] = static_cast<std::int64_t>(static_cast<std::uint64_t>(Wide(bits) * vocabulary >> 64));
    }
  }
}

}  // namespace

SyntheticSamples::SyntheticSamples(const SampleShape& shape, std::int64_t samples, std::uint64_t seed)
    : shape_(shape), samples_(samples), seed_(seed) {
  if (shape.sequence_length < 1 || shape.vocab_size < 1 || samples < 0)
    throw Error(ASSAY_INVALID_ARGUMENT, "synthetic samples: sequence_length " + std::to_string(shape.sequence_length) +
                                            ", vocab_size " + std::to_string(shape.vocab_size) + ", samples " +
                                            std::to_string(samples) + "; expected at least 1, 1 and 0");
}

void SyntheticSamples::read(std::int64_t index, std::span<std::int64_t> out) const {
  const auto tokens = static_cast<std::size_t>(shape_.tokens());
  for (; !out.empty(); out = out.subspan(tokens), ++index)
    make_sample(out.first(tokens), seed_, static_cast<std::uint64_t>(index),
                static_cast<std::uint64_t>(shape_.vocab_size));
}

}  // namespace assay::data
