// A rank's own gradients against another path, where memory is short for the other one.
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>

#include <algorithm>
#include <array>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

// The other path of this model keeps scores, and needs more activations than the timed one.
models::DecoderTrainerConfig with_scores() {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.context_length = 256;
  return c;
}

// What the other path takes of so many sequences.
std::size_t bytes_of(const models::DecoderTrainer& trainer, std::int64_t sequences) {
  models::DecoderConfig config = verification::opposite_path(trainer.config().model);
  config.batch_size = sequences;
  return models::DecoderModel(config, trainer.parameters(), trainer.ids()).activation_bytes();
}

Verified verified_with_room_for(std::int64_t sequences) {
  TrainerHost host;
  models::DecoderTrainer trainer(host.host(), with_scores());
  test::set_up(trainer, host);
  EXPECT_GT(bytes_of(trainer, 1), trainer.model().activation_bytes() / 4);
  host.most_of_verification = sequences > 0 ? bytes_of(trainer, sequences) : bytes_of(trainer, 1) - 1;
  return verification::check_own_gradients(trainer);
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

// A device of two lanes, each with workspace for what was prepared on it, as a GPU's are.
class TwoLanes final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void begin_side() override { lane_ = 1; }
  void end_side() override { lane_ = 0; }
  void join_side() override {}
  void run_any(const compute::AnyOperation& operation) override {
    if (const auto* product = compute::operation_cast<compute::op::Matmul>(operation)) {
      const std::int64_t wanted = product->c.elements();
      if (!executes())
        prepared_[lane_] = std::max(prepared_[lane_], wanted);
      else if (wanted > prepared_[lane_])
        throw Error(ASSAY_INVALID_ARGUMENT, "more than was prepared on the lane");
    }
    real().run_any(operation);
  }

 private:
  std::array<std::int64_t, 2> prepared_{};
  std::size_t lane_ = 0;
};

TEST(OwnGradients, AreAuditedOnOneLaneWhereTheStepHasTwo) {
  TrainerHost host(test::broken<TwoLanes>());
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.side_lane = true;
  // The largest result is a weight's gradient, which the step makes on the side lane.
  c.model.vocab_size = 512, c.model.batch_size = 1, c.model.context_length = 16;
  models::DecoderTrainer trainer(host.host(), c);
  test::set_up(trainer, host);
  EXPECT_FALSE(verification::check_own_gradients(trainer).in_part);
}

}  // namespace
}  // namespace assay::train
