// Makes sequences of tokens that can be learnt, new ones at each call. They form a chain: nine times out of ten, the
// token after a pair is the successor of the pair's first token, by a fixed permutation of the vocabulary; else it is
// any token. A token thus depends not on the last token but on the one before, so that the blocks are needed, and not
// embedding and head alone.
//
// What a model can come to is the chain's entropy: with p = 0.9 + 0.1 / V for the successor and q = 0.1 / V for each
// other token, -(p ln p + (V - 1) q ln q) nats a token; and ln V for the first of a sequence, which follows nothing.
#pragma once
#include <assay/models/decoder.hpp>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace mixed_precision {

class Chain {
 public:
  // The same seed gives the same sequences, on every machine.
  Chain(std::uint64_t seed, const assay::models::DecoderConfig& model)
      : random_(seed),
        words_(static_cast<std::uint64_t>(model.vocab_size)),
        context_(static_cast<std::size_t>(model.context_length)),
        successor_(static_cast<std::size_t>(model.vocab_size)),
        tokens_(static_cast<std::size_t>(model.rows())),
        labels_(tokens_.size()) {
    std::iota(successor_.begin(), successor_.end(), 0);
    for (std::uint64_t i = words_; i > 1; --i)
      std::swap(successor_[static_cast<std::size_t>(i - 1)], successor_[static_cast<std::size_t>(random_() % i)]);
  }

  void advance() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool is_first = i % context_ == 0;
      tokens_[i] = is_first ? any() : labels_[i - 1];
      labels_[i] = is_first || random_() % 10 == 0 ? any() : successor_[static_cast<std::size_t>(tokens_[i - 1])];
    }
  }
  const std::vector<std::int64_t>& tokens() const { return tokens_; }
  const std::vector<std::int64_t>& labels() const { return labels_; }

 private:
  std::int64_t any() { return static_cast<std::int64_t>(random_() % words_); }

  std::mt19937_64 random_;
  std::uint64_t words_;
  std::size_t context_;
  std::vector<std::int64_t> successor_, tokens_, labels_;
};

}  // namespace mixed_precision
