// An encoder-decoder against float64, with models and operations that are broken in ways which both of its paths share.
#include <assay/verification/encoder_decoder_check.hpp>

#include <algorithm>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::operation_cast;
using test::BrokenBackend;
using test::TrainerHost;

models::EncoderDecoderTrainerConfig small_encoder_decoder() {
  models::EncoderDecoderTrainerConfig c;
  c.model.d_model = 32, c.model.d_ff = 48, c.model.heads = 2, c.model.vocab_size = 96;
  c.model.encoder_layers = 2, c.model.decoder_layers = 2, c.model.batch_size = 2, c.model.sequence_length = 16;
  c.model.dropout_seed = 11;
  return c;
}

Verified checked(const TrainerHost& host, const models::EncoderDecoderTrainerConfig& config) {
  models::EncoderDecoderTrainer trainer(host.host(), config);
  trainer.setup(host.launch());
  return verification::check_encoder_decoder_against_float64(host.host(), trainer, 1);
}

template <class Broken>
std::string found_in(const models::EncoderDecoderTrainerConfig& config) {
  const TrainerHost host(test::broken<Broken>());
  return test::wrong_result_of([&] { checked(host, config); });
}

// On any path, in any format whose rounding the tolerance knows.
TEST(EncoderDecoderCheck, HoldsARightModelOnEveryPath) {
  for (const bool fused : {true, false})
    for (const bool flash : {true, false})
      for (const char* const precision : {"fp32", "bf16"}) {
        const TrainerHost host;
        models::EncoderDecoderTrainerConfig config = small_encoder_decoder();
        config.model.fused = fused, config.model.flash = flash;
        config.model.precision = workload::precision_policy(precision, "cpu");
        const Verified verified = checked(host, config);
        EXPECT_FALSE(verified.in_part);
        EXPECT_PRED2([](const auto& text, const auto& part) { return text.find(part) != std::string::npos; },
                     verified.text, "46 tokens, 2 + 2 of 2 + 2 layers against float64: loss differs by");
        EXPECT_NE(verified.text.find("layers, dropout included, against float64"), std::string::npos) << verified.text;
      }
}

TEST(EncoderDecoderCheck, WithoutDropoutHoldsOneStep) {
  const TrainerHost host;
  models::EncoderDecoderTrainerConfig config = small_encoder_decoder();
  config.model.dropout = 0;
  EXPECT_EQ(checked(host, config).text.find("dropout"), std::string::npos);
}

TEST(EncoderDecoderCheck, OfADeepModelHoldsItsFirstLayers) {
  const TrainerHost host;
  models::EncoderDecoderTrainerConfig config = small_encoder_decoder();
  config.model.encoder_layers = 5, config.model.decoder_layers = 4;
  EXPECT_NE(checked(host, config).text.find("3 + 3 of 5 + 4 layers against float64"), std::string::npos);
}

TEST(EncoderDecoderCheck, TakesTheDecoderLayersFirstWhereFewAreAffordable) {
  models::EncoderDecoderConfig c;
  c.d_model = 768, c.heads = 12, c.d_ff = 3072, c.encoder_layers = c.decoder_layers = 12;
  const models::EncoderDecoderConfig shape = verification::reference_shape(c);
  EXPECT_GE(shape.decoder_layers, 2);
  EXPECT_GE(shape.decoder_layers, shape.encoder_layers);
  EXPECT_LE(3e-9 * static_cast<double>(models::encoder_decoder_forward_flops(shape)), 4);
  c.d_model = 16384, c.d_ff = 65536;
  EXPECT_EQ(verification::reference_shape(c).decoder_layers, 0);
}

// The memory's gradient keeps the share of the decoder layer that comes last in backward.
class KeepsOneShare final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    const auto* const product = operation_cast<op::Matmul>(any);
    // The products by keys and values of the cross attention alone have twice the width.
    if (!product || !product->accumulate || product->a.dim(1) != 64) return real().run_any(any);
    op::Matmul alone = *product;
    alone.accumulate = false;
    real().run(alone);
  }
};

class SeesTheFuture final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    if (const auto* const forward = operation_cast<op::AttentionForward>(any)) {
      op::AttentionForward seeing = *forward;
      seeing.shape.causal = false;
      return real().run(seeing);
    }
    if (const auto* const backward = operation_cast<op::AttentionBackward>(any)) {
      op::AttentionBackward seeing = *backward;
      seeing.shape.causal = false;
      return real().run(seeing);
    }
    real().run_any(any);
  }
};

class DoublesTheScale final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    if (const auto* const forward = operation_cast<op::AttentionForward>(any)) {
      op::AttentionForward doubled = *forward;
      doubled.shape.scale *= 2;
      return real().run(doubled);
    }
    if (const auto* const backward = operation_cast<op::AttentionBackward>(any)) {
      op::AttentionBackward doubled = *backward;
      doubled.shape.scale *= 2;
      return real().run(doubled);
    }
    real().run_any(any);
  }
};

class ForgetsPositions final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    const auto* const add = operation_cast<op::BiasAdd>(any);
    if (!add || add->x.dim(0) != 2) return real().run_any(any);  // whole sequences
    real().run(op::Copy{.to = add->y, .from = add->x});
  }
};

// The gradient by the positions gets a row more than the sequence has places.
class WritesOnePlaceMore final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    real().run_any(any);
    const auto* const bias = operation_cast<op::BiasBackward>(any);
    if (!executes() || !bias || bias->dbias.elements() != places * width) return;
    real().run(op::Fill{.x = compute::Tensor(bias->dbias.data, bias->dbias.dtype, {(places + 1) * width})
                                 .slice(0, places * width, width),
                        .value = 1});
  }

 private:
  static constexpr std::int64_t places = 12, width = 32;  // of the sequences that are held against float64
};

class DropsTwiceAsMuch final : public BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    const auto* const hidden = operation_cast<op::BiasReluDropoutForward>(any);
    if (!hidden || hidden->dropout.probability == 0) return real().run_any(any);
    op::BiasReluDropoutForward more = *hidden;
    more.dropout.probability *= 2;
    real().run(more);
  }
};

TEST(EncoderDecoderCheck, FindsWhatBothPathsShare) {
  const models::EncoderDecoderTrainerConfig config = small_encoder_decoder();
  EXPECT_NE(found_in<KeepsOneShare>(config).find("against float64"), std::string::npos);
  EXPECT_NE(found_in<SeesTheFuture>(config).find("against float64"), std::string::npos);
  EXPECT_NE(found_in<DoublesTheScale>(config).find("against float64"), std::string::npos);
  EXPECT_NE(found_in<ForgetsPositions>(config).find("against float64"), std::string::npos);
  EXPECT_NE(found_in<WritesOnePlaceMore>(config).find("pos.weight"), std::string::npos);
  // Only with dropout is there something to find.
  EXPECT_NE(found_in<DropsTwiceAsMuch>(config).find("dropout included, against float64"), std::string::npos);
  models::EncoderDecoderTrainerConfig without = config;
  without.model.dropout = 0;
  EXPECT_EQ(found_in<DropsTwiceAsMuch>(without), "");
}

}  // namespace
}  // namespace assay::train
