// Is what a rank trains the decoder that was asked for: its batch, its parameters and what they start from, and the
// step that its trainer enqueues.
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_data_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>

#include "counter_random.hpp"
#include "decoder_parameters.hpp"
#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::DType;
using compute::Tensor;
using test::TrainerHost;

// ---- the batch -----------------------------------------------------------------------------------------------------

TEST(DecoderData, IsDerivedAsTheDeviceDrawsIt) {
  constexpr std::int64_t count = 101;
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  test::set_up(trainer, host);
  const DeviceMemory memory(host.host(), ASSAY_MEMORY_DATA, count * 8, "verification");
  const Tensor numbers(memory.data(), DType::i64, {count});
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}})
    for (const std::uint64_t stream : {std::uint64_t{0}, std::uint64_t{1'000'001}, std::uint64_t{1} << 62})
      for (const std::int64_t range : {std::int64_t{2}, std::int64_t{10'000}, (std::int64_t{1} << 24) - 3}) {
        trainer.backend().run(
            op::RandomIntegers{.x = numbers, .seed = seed, .stream = stream, .low = 0, .high = range});
        std::vector<std::int64_t> drawn(count);
        trainer.backend().synchronize();
        trainer.backend().download(drawn.data(), numbers);
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(drawn[static_cast<std::size_t>(i)], verification::random_integer(seed, stream, i, range))
              << seed << ' ' << stream << ' ' << i;
      }
}

// Draws in place of an operation what it is asked to.
class DrawsOthers final : public test::BrokenBackend {
 public:
  using Change = void (*)(op::RandomIntegers&);
  DrawsOthers(std::unique_ptr<compute::Backend> real, Change change)
      : BrokenBackend(std::move(real)), change_(change) {}
  void run_any(const compute::AnyOperation& any) override {
    const auto* const draw = compute::operation_cast<op::RandomIntegers>(any);
    if (!draw) return real().run_any(any);
    op::RandomIntegers changed = *draw;
    change_(changed);
    real().run(changed);
  }

 private:
  Change change_;
};

std::string wrong_data(TrainerHost::Make make, std::int64_t rank) {
  const TrainerHost host(std::move(make));
  models::DecoderTrainerConfig config = test::small_trainer();
  config.data_rank = rank, config.data_ranks = 3, config.seed = 7;
  config.model.accumulation_steps = 2;
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  return verification::wrong_data_of(trainer);
}

TEST(DecoderData, OfEachRankIsItsPartOfTheBatch) {
  for (const std::int64_t rank : {0, 1, 2})
    EXPECT_EQ(wrong_data([](std::unique_ptr<compute::Backend> real) { return real; }, rank), "");
}

TEST(DecoderData, IsWrongOfAnotherSeedStreamOrVocabulary) {
  const DrawsOthers::Change changes[] = {
      [](op::RandomIntegers& draw) { ++draw.seed; },
      [](op::RandomIntegers& draw) { draw.stream = 1'000'001; },                              // labels are the tokens
      [](op::RandomIntegers& draw) { draw.high = draw.high / 2; },                            // half of the words
      [](op::RandomIntegers& draw) { draw.x = draw.x.slice(0, 0, draw.x.elements() / 2); }};  // some are not drawn
  const char* const reasons[] = {"token 0 is ", "label 0 is ", "token ", "token "};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string wrong = wrong_data(test::broken<DrawsOthers>(changes[i]), 2);
    EXPECT_EQ(wrong.rfind(reasons[i], 0), 0U) << i << ": " << wrong;
  }
}

// ---- parameters ----------------------------------------------------------------------------------------------------

models::DecoderConfig small_model() { return test::small_trainer().model; }

std::string reason_for(const models::DecoderConfig& has, const models::DecoderConfig& asked) {
  ParameterSet set(has.precision);
  models::add_decoder_parameters(set, has);
  return test::wrong_result_of([&] { verification::check_decoder_parameters(set, asked); });
}

TEST(DecoderParameters, AreThoseOfThePublishedDescription) {
  models::DecoderConfig grouped = small_model();
  grouped.heads = 4, grouped.kv_heads = 2, grouped.qkv_bias = true;
  models::DecoderConfig tied = grouped;
  tied.tied_embeddings = true;
  models::DecoderConfig wide_heads = grouped;
  wide_heads.head_dim = 12, wide_heads.qk_norm = true;
  models::DecoderConfig with_sinks = grouped;
  with_sinks.attention_sinks = with_sinks.output_bias = true;
  models::DecoderConfig latent = small_model();
  latent.latent = {.kv_lora_rank = 10, .qk_nope_head_dim = 5, .qk_rope_head_dim = 4, .v_head_dim = 7};
  models::DecoderConfig latent_queries = latent;
  latent_queries.latent.q_lora_rank = 9;
  EXPECT_NE(reason_for(latent, latent_queries), "");
  for (const models::DecoderConfig& config :
       {small_model(), grouped, tied, wide_heads, with_sinks, latent, latent_queries})
    EXPECT_EQ(reason_for(config, config), "");
}

TEST(DecoderParameters, AreFoundToBeOthers) {
  models::DecoderConfig other = small_model();
  other.heads = 4, other.kv_heads = 2;
  models::DecoderConfig asked = other;
  asked.kv_heads = 0;
  EXPECT_EQ(reason_for(other, asked),
            "the model's 'layers.0.attn.k_proj.weight' has dimensions [16, 32], in such a decoder it has [32, 32]");
  asked = other;
  asked.head_dim = 12;
  EXPECT_EQ(reason_for(other, asked),
            "the model's 'layers.0.attn.q_proj.weight' has dimensions [32, 32], in such a decoder it has [48, 32]");
  asked = other;
  asked.layers = 1;
  EXPECT_NE(reason_for(other, asked).find("parameters, such a decoder has 12"), std::string::npos);
  asked = other;
  asked.qkv_bias = true;
  EXPECT_NE(reason_for(other, asked).find("has no parameter 'layers.0.attn.q_proj.bias'"), std::string::npos);
  asked = other;
  asked.qk_norm = true;
  EXPECT_NE(reason_for(other, asked).find("has no parameter 'layers.0.attn.q_norm.weight'"), std::string::npos);
  asked = other;
  asked.tied_embeddings = true;
  EXPECT_NE(reason_for(other, asked).find("'token_embeddings.weight' starts from mean 0 and deviation 1, expected"),
            std::string::npos);
}

// Every weight is drawn so much wider, or from elsewhere.
class DrawsWider final : public test::BrokenBackend {
 public:
  DrawsWider(std::unique_ptr<compute::Backend> real, float factor, float shift)
      : BrokenBackend(std::move(real)), factor_(factor), shift_(shift) {}
  void run_any(const compute::AnyOperation& any) override {
    const auto* const draw = compute::operation_cast<op::RandomNormal>(any);
    if (!draw) return real().run_any(any);
    op::RandomNormal changed = *draw;
    changed.mean += shift_ * changed.std;
    changed.std *= factor_;
    real().run(changed);
  }

 private:
  float factor_, shift_;
};

TEST(DecoderParameters, AreFoundToStartFromOtherNumbers) {
  for (const auto& [factor, shift] : {std::pair{1.3F, 0.0F}, {0.8F, 0.0F}, {1.0F, 0.3F}, {0.0F, 0.0F}}) {
    const TrainerHost host(test::broken<DrawsWider>(factor, shift));
    models::DecoderTrainer trainer(host.host(), test::small_trainer());
    test::set_up(trainer, host);
    const std::string reason =
        test::wrong_result_of([&] { verification::check_against_float64(host.host(), trainer, 1); });
    EXPECT_EQ(reason.rfind("the weights that '", 0), 0U) << factor << ' ' << shift << ": " << reason;
  }
}

// ---- the step ------------------------------------------------------------------------------------------------------

// Its labels are its tokens, which a model learns at once: in forward and in backward, so that gradients fit the loss.
class LearnsItsInput final : public models::DecoderTrainer {
 public:
  using DecoderTrainer::DecoderTrainer;
  void forward_of(std::int64_t /*micro_batch*/) const override {
    const Tensor labels = inputs();
    model().forward(backend(), inputs(), &labels, valid_rows());
  }
  void backward_of(std::int64_t /*micro_batch*/, GradientListener* listener) const override {
    model().backward(backend(), inputs(), inputs(), valid_rows(), listener);
  }
};

TEST(OwnStep, OfATrainerThatTakesOtherLabelsIsFound) {
  const TrainerHost host;
  LearnsItsInput trainer(host.host(), test::small_trainer());
  test::set_up(trainer, host);
  const std::string reason = test::wrong_result_of([&] { verification::check_own_gradients(trainer); });
  EXPECT_NE(reason.find("as it is enqueued against its operations one by one"), std::string::npos) << reason;
}

TEST(Float64Check, OfSeveralRanksLooksAtTokensOfTheirOwnAndSharesTheWork) {
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  test::set_up(trainer, host);
  const auto text_of = [&](std::int64_t rank) {
    const Verified verified = verification::check_against_float64(host.host(), trainer, 1, {.rank = rank, .ranks = 4});
    EXPECT_FALSE(verified.in_part);
    return verified.text;
  };
  EXPECT_NE(text_of(0).find("2 of 2 layers against float64"), std::string::npos);
  EXPECT_NE(text_of(0), text_of(3));  // how far they are apart is another number in other tokens
  models::DecoderConfig model = test::small_trainer().model;
  model.d_model = 512, model.d_ff = 2048, model.layers = 4, model.heads = 8, model.vocab_size = 10'000;
  EXPECT_GT(verification::reference_shape(model).step_rows() * verification::reference_shape(model).layers,
            verification::reference_shape(model, {.rank = 0, .ranks = 8}).step_rows() *
                verification::reference_shape(model, {.rank = 0, .ranks = 8}).layers);
}

TEST(OwnModel, IsHeldAgainstAnotherPathAndFloat64) {
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  test::set_up(trainer, host);
  const Verified of_first = verification::check_own_model(host.host(), trainer, {.rank = 0, .ranks = 2});
  EXPECT_FALSE(of_first.in_part);
  EXPECT_NE(of_first.text.find("2 of 2 layers against float64"), std::string::npos) << of_first.text;
  EXPECT_NE(of_first.text.find("fused path against the unfused one"), std::string::npos) << of_first.text;
  const Verified of_second = verification::check_own_model(host.host(), trainer, {.rank = 1, .ranks = 2});
  EXPECT_NE(of_second.text.find("2 of 2 layers against float64"), std::string::npos) << of_second.text;
  EXPECT_EQ(of_second.text.find("fused path"), std::string::npos) << "of one batch rank 0 alone compares paths";
}

TEST(OwnModel, WithoutMemoryIsVerifiedInPart) {
  TrainerHost host;
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  test::set_up(trainer, host);
  host.most_of_verification = 16;
  const Verified verified = verification::check_own_model(host.host(), trainer, {.rank = 1, .ranks = 2});
  EXPECT_TRUE(verified.in_part);
  EXPECT_EQ(verified.text, "not held against float64: there is no memory for it; ");
}

}  // namespace
}  // namespace assay::train
