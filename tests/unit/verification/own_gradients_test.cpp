// A rank's own gradients against another path, where memory is short for the other one.
#include <assay/train/decoder_check.hpp>
#include <assay/train/decoder_rank_check.hpp>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

// The other path of this model keeps scores, and needs more activations than the timed one.
DecoderTrainerConfig with_scores() {
  DecoderTrainerConfig c = test::small_trainer();
  c.model.context_length = 256;
  return c;
}

// What the other path takes of so many sequences.
std::size_t bytes_of(const DecoderTrainer& trainer, std::int64_t sequences) {
  DecoderConfig config = opposite_path(trainer.config().model);
  config.batch_size = sequences;
  return DecoderModel(config, trainer.parameters(), trainer.ids()).activation_bytes();
}

Verified verified_with_room_for(std::int64_t sequences) {
  TrainerHost host;
  DecoderTrainer trainer(host.host(), with_scores());
  test::set_up(trainer, host);
  EXPECT_GT(bytes_of(trainer, 1), trainer.model().activation_bytes() / 4);
  host.most_of_verification = sequences > 0 ? bytes_of(trainer, sequences) : bytes_of(trainer, 1) - 1;
  return check_own_gradients(trainer);
}

TEST(OwnGradients, AreComparedInAllSequencesWhereTheOtherPathFits) {
  const Verified verified = verified_with_room_for(4);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("each rank's own, fused path against the unfused one: loss differs by"),
            std::string::npos)
      << verified.text;
  EXPECT_NE(verified.text.find(", of all elements"), std::string::npos) << verified.text;
}

TEST(OwnGradients, AreComparedInFewerSequencesWhereMemoryIsShort) {
  const Verified verified = verified_with_room_for(1);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("of the first 1 of 4 sequences of each rank, fused path against the unfused one"),
            std::string::npos)
      << verified.text;
}

TEST(OwnGradients, AreVerifiedInPartWhereNotOneSequenceFits) {
  const Verified verified = verified_with_room_for(0);
  EXPECT_TRUE(verified.in_part);
  EXPECT_NE(verified.text.find("there is no memory for one sequence"), std::string::npos) << verified.text;
}

}  // namespace
}  // namespace assay::train
