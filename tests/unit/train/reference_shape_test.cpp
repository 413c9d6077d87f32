// How much of a decoder is held against float64: what a few seconds of two processors can do.
#include <gtest/gtest.h>

#include <assay/verification/decoder_check.hpp>

namespace assay::train {
namespace {

TEST(ReferenceShape, OfATinyModelHasAllItsLayers) {
  models::DecoderConfig c;
  c.d_model = 32, c.d_ff = 64, c.layers = 2, c.heads = 2, c.vocab_size = 96, c.batch_size = 2, c.context_length = 16;
  const models::DecoderConfig shape = verification::reference_shape(c);
  EXPECT_EQ(shape.layers, 2);
  EXPECT_EQ(shape.context_length, 16);
  EXPECT_EQ(shape.batch_size, 2);
}

TEST(ReferenceShape, KeepsTheWidthAndGivesUpTokensAndLayers) {
  models::DecoderConfig c;
  c.d_model = 2560, c.d_ff = 10'240, c.layers = 32, c.heads = 32, c.context_length = 2048, c.batch_size = 4;
  const models::DecoderConfig shape = verification::reference_shape(c);
  EXPECT_EQ(shape.d_model, 2560);
  EXPECT_EQ(shape.vocab_size, c.vocab_size);
  EXPECT_EQ(shape.layers, 1);
  EXPECT_EQ(shape.context_length, 8);
}

TEST(ReferenceShape, OfAVocabularyThatFillsTheHostHasNoLayer) {
  models::DecoderConfig c;
  c.vocab_size = 16'777'216;
  EXPECT_EQ(verification::reference_shape(c).layers, 0);
}

}  // namespace
}  // namespace assay::train
