// Documents packed in sequences: how they are drawn, and what attention, the loss and the work make of them.
#include <gtest/gtest.h>
#include <assay/models/decoder.hpp>
#include <assay/models/documents.hpp>
#include <assay/verification/decoder_check.hpp>
#include <cmath>
#include <numeric>

namespace assay::train {
namespace {

using Lengths = std::vector<std::int64_t>;
using models::DocumentLengths;

std::int64_t sum_of(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

TEST(Documents, OfOneLengthEndWithTheSequence) {
  EXPECT_EQ(models::draw_documents(DocumentLengths::fixed, 5, 12, 1), (Lengths{5, 5, 2}));
  EXPECT_EQ(models::draw_documents(DocumentLengths::fixed, 4, 12, 1), (Lengths{4, 4, 4}));
  EXPECT_EQ(models::draw_documents(DocumentLengths::fixed, 20, 12, 1), Lengths{12});
}

TEST(Documents, DrawnOnesHaveTheirMeanAndSpread) {
  constexpr std::int64_t tokens = 1 << 24, mean = 500;
  const Lengths drawn = models::draw_documents(DocumentLengths::log_normal, mean, tokens, 7);
  EXPECT_EQ(drawn, models::draw_documents(DocumentLengths::log_normal, mean, tokens, 7));
  EXPECT_NE(drawn, models::draw_documents(DocumentLengths::log_normal, mean, tokens, 8));
  EXPECT_EQ(sum_of(drawn), tokens);
  EXPECT_GE(std::ranges::min(drawn), 1);
  const auto count = static_cast<double>(drawn.size());
  double sum = 0, squares = 0;
  for (const std::int64_t n : drawn) {
    sum += std::log(static_cast<double>(n));
    squares += std::log(static_cast<double>(n)) * std::log(static_cast<double>(n));
  }
  EXPECT_NEAR(static_cast<double>(tokens) / count, mean, 0.05 * mean);
  EXPECT_NEAR(sum / count, std::log(500) - 0.5, 0.05);
  EXPECT_NEAR(std::sqrt(squares / count - sum / count * sum / count), 1, 0.05);
}

TEST(Documents, OfAShorterSequenceAreShorterInProportion) {
  EXPECT_EQ(models::shortened_documents(Lengths{100, 50, 10, 40}, 20), (Lengths{10, 5, 2, 3}));
  EXPECT_EQ(models::shortened_documents(Lengths{1, 1, 1, 1, 60}, 16), (Lengths{1, 1, 1, 1, 12})) << "of at least 1";
  EXPECT_EQ(models::shortened_documents(Lengths{16, 16, 16, 16, 16}, 5), (Lengths{2, 2, 1}));
  EXPECT_EQ(models::shortened_documents(Lengths{3, 4}, 7), (Lengths{3, 4}));
  EXPECT_TRUE(models::shortened_documents(Lengths{}, 7).empty());
  models::DecoderConfig c;
  c.d_model = 2560, c.d_ff = 10'240, c.layers = 32, c.heads = 32, c.context_length = 2048;
  c.documents = {1024, 512, 512};
  EXPECT_EQ(verification::reference_shape(c).documents, (Lengths{4, 2, 2}));
}

TEST(Documents, LabelsOfTheNextOneCountForNothing) {
  Lengths labels(12, 7);
  models::ignore_labels_across_documents(labels, Lengths{1, 3, 2});
  EXPECT_EQ(labels, (Lengths{-1, 7, 7, -1, 7, 7, -1, 7, 7, -1, 7, 7})) << "two sequences, whose last labels stay";
}

TEST(Documents, AttentionIsToldWhereTheyBegin) {
  const models::DocumentPlaces places(Lengths{1, 3, 2}, 2);
  EXPECT_EQ(places.first_keys, (std::vector<std::int32_t>{0, 1, 1, 1, 4, 4, 0, 1, 1, 1, 4, 4}));
  EXPECT_EQ(places.starts, (std::vector<std::int32_t>{0, 1, 4, 6, 7, 10, 12}));
}

// 1 + 6 + 3 pairs of a sequence; with a window of 2 of them 1 + 5 + 3.
TEST(Documents, OperationsAreThoseOfTheirPairs) {
  const models::DocumentSizes whole_ones(Lengths{1, 3, 2}, 2, 0), windowed(Lengths{1, 3, 2}, 2, 2);
  EXPECT_EQ(whole_ones.longest, 3);
  EXPECT_EQ(whole_ones.pairs, 2 * 10);
  EXPECT_EQ(windowed.pairs, 2 * 9);
  EXPECT_EQ(models::document_pairs(Lengths{1, 3, 2}, 0), 10);
  EXPECT_EQ(models::document_pairs(Lengths{1, 3, 2}, 2), 9);
  models::DecoderConfig c;
  c.d_model = 64, c.d_ff = 128, c.layers = 3, c.heads = 4, c.batch_size = 2, c.context_length = 6;
  const std::uint64_t whole = models::decoder_forward_flops(c);  // half of the score matrix, 18
  c.documents = {1, 3, 2};
  EXPECT_EQ(whole - models::decoder_forward_flops(c), 3ull * 4 * 2 * (18 - 10) * 64);
  c.sliding_window = 2, c.full_attention_every = 3;
  EXPECT_EQ(whole - models::decoder_forward_flops(c), 4ull * 2 * (3 * 18 - 10 - 2 * 9) * 64);
}

TEST(Documents, ThatDoNotFillTheSequenceAreRefused) {
  for (const Lengths& documents : {Lengths{1, 3}, Lengths{7}, Lengths{6, 0}}) {
    models::DecoderConfig c;
    c.context_length = 6, c.documents = documents;
    EXPECT_THROW(c.validate(), Error);
  }
  models::DecoderConfig c;
  c.context_length = 8, c.documents = {3, 5};
  EXPECT_NO_THROW(c.validate());
  c.context.ranks = 2;
  EXPECT_THROW(c.validate(), Error) << "of sequences that ranks share out";
}

}  // namespace
}  // namespace assay::train
