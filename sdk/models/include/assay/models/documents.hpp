// Documents packed in a sequence, whose tokens do not see each other: how they are drawn, and what attention is given.
//
// All sequences of a step have documents of the same lengths, on every rank. The step's loss is then a mean over as
// many labels on each of them, and its work is known beforehand.
//
// Positions of the rotation count through the sequence. Scores depend on differences of positions alone, so that a
// document's results are those that it has by itself, wherever it begins.
#pragma once
#include <assay/compute/operations/attention.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace assay::models {

// fixed: all of one length. log_normal: the logarithm is normal with deviation 1, as lengths of texts roughly are.
enum class DocumentLengths { fixed, log_normal };

// The lengths of the documents that fill a sequence of `length` tokens: `mean` tokens, or drawn around that from the
// seed, at least 1. The last document ends with the sequence.
std::vector<std::int64_t> draw_documents(DocumentLengths kind, std::int64_t mean, std::int64_t length,
                                         std::uint64_t seed);

// Documents of a shorter sequence, each shorter in proportion, but of at least 2 tokens where it has so many: one token
// alone has no gradient by its score.
std::vector<std::int64_t> shortened_documents(std::span<const std::int64_t> documents, std::int64_t length);

// Pairs of a token and one that it sees, of a sequence; a window as in compute::AttentionShape.
std::int64_t document_pairs(std::span<const std::int64_t> documents, std::int64_t window);

// The label of a document's last token is the next document's first one: it counts for nothing. That of a sequence's
// last token stays, as it does without documents.
void ignore_labels_across_documents(std::span<std::int64_t> labels, std::span<const std::int64_t> documents);

// What the tensors of compute::PackedDocuments hold, of a batch.
struct DocumentPlaces {
  std::vector<std::int32_t> first_keys, starts;

  DocumentPlaces(std::span<const std::int64_t> documents, std::int64_t sequences);
};

// The numbers of compute::PackedDocuments, of a batch. A step asks for them in every layer, and a sequence may have
// many documents: callers count once.
struct DocumentSizes {
  std::int64_t longest = 0, pairs = 0;

  DocumentSizes() = default;  // of no documents
  DocumentSizes(std::span<const std::int64_t> documents, std::int64_t sequences, std::int64_t window);
  compute::PackedDocuments packed(const compute::Tensor& first_keys, const compute::Tensor& starts) const {
    return {.first_keys = first_keys, .starts = starts, .longest = longest, .pairs = pairs};
  }
};

}  // namespace assay::models
