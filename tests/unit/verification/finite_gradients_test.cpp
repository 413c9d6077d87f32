// With loss scaling a gradient may overflow, and a lower scale is tried; one that is finite at no scale is wrong. No
// CPU computes in fp16, and its loss knows no scale: here a decoder in fp32 has one, which the broken backend
// multiplies by, and overflows as fp16 would.
#include <assay/verification/path_check.hpp>
#include <cmath>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::Tensor;
using test::TrainerHost;

models::DecoderTrainerConfig with_loss_scale() {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.precision.loss_scaling = true;
  return c;
}

// Gradients by the embedding overflow where the gradient of the loss is scaled by more than `most`.
class Overflows final : public test::BrokenBackend {
 public:
  Overflows(std::unique_ptr<compute::Backend> real, float most) : BrokenBackend(std::move(real)), most_(most) {}
  void run_any(const compute::AnyOperation& any) override {
    compute::visit_operation(
        any,
        [&](const op::CrossEntropyInPlace& op) {
          if (executes() && op.loss_scale) real().download(&present_, op.loss_scale);
          op::CrossEntropyInPlace unscaled = op;
          unscaled.loss_scale = {};
          real().run(unscaled);
          if (executes()) real().run(op::Scale{.x = op.logits, .factor = present_, .out = op.logits});
        },
        [&](const op::EmbeddingBackward& op) {
          real().run(op);
          if (executes() && present_ > most_) real().run(op::Fill{.x = op.dtable.slice(0, 7, 1), .value = INFINITY});
        },
        [&](const auto& op) { real().run(op); });
  }

 private:
  float most_, present_ = 1;
};

void set_up_without_update(models::DecoderTrainer& trainer, const TrainerHost& host) {
  trainer.setup(host.launch(), [&] {
    trainer.forward();
    trainer.backward();
  });
}

double found_scale(models::DecoderTrainer& trainer) {
  return verification::find_finite_gradients(trainer, [&] {
    trainer.forward();
    trainer.backward();
  });
}

TEST(FiniteGradients, OfASoundModelAreSoAtOnce) {
  const TrainerHost host(test::broken<Overflows>(1e9F));
  models::DecoderTrainer trainer(host.host(), with_loss_scale());
  set_up_without_update(trainer, host);
  EXPECT_EQ(found_scale(trainer), verification::verification_loss_scale);
}

TEST(FiniteGradients, AreFoundAtALowerScale) {
  const TrainerHost host(test::broken<Overflows>(40.0F));
  models::DecoderTrainer trainer(host.host(), with_loss_scale());
  set_up_without_update(trainer, host);
  EXPECT_EQ(found_scale(trainer), 32);
}

TEST(FiniteGradients, ThatAreSoAtNoScaleAreWrongAndNamed) {
  const TrainerHost host(test::broken<Overflows>(0.0F));
  models::DecoderTrainer trainer(host.host(), with_loss_scale());
  set_up_without_update(trainer, host);
  const std::string reason = test::wrong_result_of([&] { found_scale(trainer); });
  EXPECT_NE(reason.find("gradient of token_embeddings.weight is not finite, whatever the loss scale"),
            std::string::npos)
      << reason;
}

// A step whose gradients overflow is skipped: what the last step has left does not cover them.
TEST(FiniteGradients, AreNotTheLastStepsAffair) {
  const TrainerHost host(test::broken<Overflows>(0.0F));
  models::DecoderTrainer trainer(host.host(), with_loss_scale());
  set_up_without_update(trainer, host);
  trainer.forward();
  trainer.backward();
  EXPECT_NE(verification::check_finite(trainer, trainer.model()).find("overflowed"), std::string::npos);
}

TEST(FiniteGradients, WithoutALossScaleAreNotLookedFor) {
  const TrainerHost host(test::broken<Overflows>(0.0F));
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  set_up_without_update(trainer, host);
  bool stepped = false;
  EXPECT_EQ(verification::find_finite_gradients(trainer, [&] { stepped = true; }), 1);
  EXPECT_FALSE(stepped);
}

}  // namespace
}  // namespace assay::train
