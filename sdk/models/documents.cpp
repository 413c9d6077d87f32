#include "assay/models/documents.hpp"

#include <assay/models/document_params.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace assay::models {

namespace {

// Normal numbers, by Box and Muller; the same with every library, unlike std::normal_distribution's.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : bits_(seed) {}
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    return radius * std::cos(angle);
  }

 private:
  double uniform() { return (static_cast<double>(bits_() >> 11U) + 0.5) * 0x1p-53; }  // in (0, 1)
  std::mt19937_64 bits_;
};

// Cuts the last one where the sequence ends.
std::vector<std::int64_t> filled(std::int64_t length, auto next) {
  std::vector<std::int64_t> documents;
  for (std::int64_t left = length; left > 0; left -= documents.back())
    documents.push_back(std::clamp<std::int64_t>(next(documents.size()), 1, left));
  return documents;
}

}  // namespace

std::vector<std::int64_t> draw_documents(DocumentLengths kind, std::int64_t mean, std::int64_t length,
                                         std::uint64_t seed) {
  if (kind == DocumentLengths::fixed) return filled(length, [&](std::size_t) { return mean; });
  Normal normal(seed);
  const auto most = static_cast<double>(length);
  return filled(length, [&](std::size_t) {  // the mean of exp(m + normal) is exp(m + 1 / 2)
    return std::llround(std::min(most, static_cast<double>(mean) * std::exp(normal() - 0.5)));
  });
}

std::vector<std::int64_t> shortened_documents(std::span<const std::int64_t> documents, std::int64_t length) {
  if (documents.empty()) return {};
  const auto whole = std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
  return filled(length, [&](std::size_t i) {
    const std::int64_t tokens = documents[i % documents.size()];
    return std::max(std::min<std::int64_t>(2, tokens), tokens * length / whole);
  });
}

std::int64_t document_pairs(std::span<const std::int64_t> documents, std::int64_t window) {
  std::int64_t pairs = 0;
  for (const std::int64_t tokens : documents) pairs += compute::visible_pairs(tokens, tokens, true, window);
  return pairs;
}

void ignore_labels_across_documents(std::span<std::int64_t> labels, std::span<const std::int64_t> documents) {
  std::size_t end = 0;
  while (end < labels.size())
    for (std::size_t i = 0; i < documents.size() && end < labels.size(); ++i) {
      end += static_cast<std::size_t>(documents[i]);
      if (i + 1 < documents.size()) labels[end - 1] = -1;
    }
}

std::vector<std::int64_t> documents_of(const Case& c, std::int64_t length) {
  const auto tokens = c.get<std::int64_t>("document_tokens");
  const DocumentLengths kind = c.choice("document_lengths", document_lengths);
  if (tokens > length && kind == DocumentLengths::fixed)
    throw Error(ASSAY_INVALID_ARGUMENT, "document_tokens " + std::to_string(tokens) + " is longer than a sequence of " +
                                            std::to_string(length) + "; expected at most that, or 0");
  if (tokens > 0) return draw_documents(kind, tokens, length, c.seed());
  if (kind != DocumentLengths::fixed)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "document_lengths is of documents packed in a sequence; set document_tokens, their mean length, or "
                "leave document_lengths out");
  return {};
}

DocumentPlaces::DocumentPlaces(std::span<const std::int64_t> documents, std::int64_t sequences) : starts{0} {
  for (std::int64_t s = 0; s < sequences; ++s) {
    std::int64_t begin = 0;
    for (const std::int64_t tokens : documents) {
      first_keys.insert(first_keys.end(), static_cast<std::size_t>(tokens), static_cast<std::int32_t>(begin));
      begin += tokens;
      starts.push_back(starts.back() + static_cast<std::int32_t>(tokens));
    }
  }
}

DocumentSizes::DocumentSizes(std::span<const std::int64_t> documents, std::int64_t sequences, std::int64_t window)
    : pairs(sequences * document_pairs(documents, window)) {
  for (const std::int64_t tokens : documents) longest = std::max(longest, tokens);
}

}  // namespace assay::models
