// What a watch says of the masks of a step, of an encoder-decoder as it is and with places that are mixed up on the
// way.
#include <assay/models/encoder_decoder_trainer.hpp>
#include <assay/verification/dropout_watch.hpp>

#include <algorithm>
#include <functional>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using test::TrainerHost;
using verification::DropoutWatch;

constexpr std::uint64_t first_stream = 2'000'000;

// Between the model and the watch: `change` may change the dropout of an operation.
using Change = std::function<void(compute::Dropout& dropout, const char* operation)>;
class Between final : public compute::ForwardingBackend {
 public:
  Between(compute::Backend& real, Change change) : ForwardingBackend(real), change_(std::move(change)) {}
  void run_any(const compute::AnyOperation& any) override {
    compute::visit_operation(
        any, [&](const auto&) { real().run_any(any); },
        [&](op::ApplyDropout o) { change_(o.dropout, o.name), real().run(o); },
        [&](op::BiasReluDropoutForward o) { change_(o.dropout, o.name), real().run(o); },
        [&](op::DropoutAddLayerNormForward o) { change_(o.dropout, o.name), real().run(o); },
        [&](op::DropoutAddLayerNormBackward o) { change_(o.dropout, o.name), real().run(o); },
        [&](op::AttentionForward o) { change_(o.shape.dropout, o.name), real().run(o); },
        [&](op::AttentionBackward o) { change_(o.shape.dropout, o.name), real().run(o); });
  }

 private:
  Change change_;
};

struct Watched {
  std::string verdict;  // the text, or what is wrong
  bool is_right = false;
};

Watched watched(bool is_eager, const Change& change, float expected_probability = 0.1F,
                std::uint64_t expected_seed = 11, std::size_t expected_places = 16) {
  const TrainerHost host;
  models::EncoderDecoderTrainerConfig c;
  c.model.d_model = 16, c.model.d_ff = 24, c.model.heads = 2, c.model.vocab_size = 32;
  c.model.encoder_layers = 1, c.model.decoder_layers = 2, c.model.batch_size = 2, c.model.sequence_length = 6;
  c.model.dropout_seed = 11;
  c.model.fused = c.model.flash = !is_eager;
  models::EncoderDecoderTrainer trainer(host.host(), c);
  trainer.setup(host.launch());
  const std::vector<std::int64_t> batch(static_cast<std::size_t>(trainer.batch().elements()), 3);
  trainer.backend().upload(trainer.batch(), batch.data());
  DropoutWatch watch(trainer.backend());
  Between between(watch, change);
  trainer.model().forward(between, trainer.batch());
  watch.begin_backward();
  trainer.model().backward(between, trainer.batch());
  try {
    return {watch.check({.probability = expected_probability,
                         .seed = expected_seed,
                         .step = trainer.optimizer().step_number(),
                         .places = expected_places}),
            true};
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT);
    return {e.what(), false};
  }
}

void nothing(compute::Dropout&, const char*) {}

void expect_wrong(const Watched& watched, const std::string& part) {
  EXPECT_FALSE(watched.is_right) << part;
  EXPECT_NE(watched.verdict.find(part), std::string::npos) << watched.verdict;
}

TEST(DropoutWatch, FindsEachPlaceOnceAndItsMaskInBackward) {
  for (const bool is_eager : {false, true}) {
    const Watched right = watched(is_eager, nothing);
    EXPECT_TRUE(right.is_right) << right.verdict;
    EXPECT_EQ(right.verdict, "16 places of dropout, each with its own mask; ");
  }
}

TEST(DropoutWatch, FindsTwoPlacesWithOneStream) {
  for (const bool is_eager : {false, true})
    expect_wrong(watched(is_eager,
                         [](compute::Dropout& d, const char*) {
                           if (d.stream == first_stream + 5) d.stream = first_stream + 2;
                         }),
                 "place 3 and place 6 of the forward draw their masks from one stream, 2000002");
}

TEST(DropoutWatch, FindsABackwardWithAnotherMask) {
  expect_wrong(watched(false,
                       [](compute::Dropout& d, const char* operation) {
                         if (operation == op::AttentionBackward::name && d.stream == first_stream + 4) d.stream += 2;
                       }),
               "the backward of place 5 has the mask of place 7 (attention_backward)");
  expect_wrong(watched(false,
                       [](compute::Dropout& d, const char* operation) {
                         if (operation == op::DropoutAddLayerNormBackward::name) d.stream += 100;
                       }),
               "the backward of place 16 has the mask of no place of the forward (dropout_add_layer_norm_backward)");
}

TEST(DropoutWatch, FindsAnotherProbabilitySeedStepAndNumberOfPlaces) {
  expect_wrong(watched(false, nothing, 0.2F), "drops with a probability of 0.1; expected 0.2");
  expect_wrong(watched(false, nothing, 0.1F, 12), "has the seed 11; expected 12");
  expect_wrong(watched(false, nothing, 0.1F, 11, 14), "the forward drops at 16 places; expected 14");
  expect_wrong(watched(false, nothing, 0), "the forward drops at 16 places; expected 0");
  const std::int64_t other_step = 7;
  expect_wrong(watched(true,
                       [&](compute::Dropout& d, const char*) {
                         if (d.stream == first_stream + 9)
                           d.step = compute::Tensor(const_cast<std::int64_t*>(&other_step), compute::DType::i64, {1});
                       }),
               "dropout reads another number than the one that counts the steps");
}

// The host makes the mask that the device applies.
TEST(DropoutWatch, MakesTheMasksOfTheDevice) {
  for (const std::int64_t step : {0, 5}) {
    const TrainerHost host;
    models::EncoderDecoderTrainerConfig c;
    c.model.d_model = 16, c.model.d_ff = 24, c.model.heads = 2, c.model.vocab_size = 32;
    c.model.encoder_layers = c.model.decoder_layers = 1, c.model.batch_size = 2, c.model.sequence_length = 6;
    models::EncoderDecoderTrainer trainer(host.host(), c);
    trainer.setup(host.launch());
    const compute::Tensor number = trainer.optimizer().step_number();
    trainer.backend().upload(number, &step);
    std::vector<float> ones(1003, 1.0F), found(ones.size());
    const compute::Tensor x(ones.data(), compute::DType::f32, {1003}), y(found.data(), compute::DType::f32, {1003});
    DropoutWatch watch(trainer.backend());
    watch.run(op::ApplyDropout{.x = x, .y = y, .dropout = {0.3F, 9, 77, number}});
    trainer.backend().synchronize();
    ASSERT_EQ(watch.masks().size(), 1u);
    ASSERT_EQ(watch.masks()[0].size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_FLOAT_EQ(watch.masks()[0][i], found[i]) << i;
    EXPECT_NE(std::count(found.begin(), found.end(), 0.0F), 0);
  }
}

}  // namespace
}  // namespace assay::train
