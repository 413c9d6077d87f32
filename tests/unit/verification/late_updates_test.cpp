// Optimizers that begin to go wrong after the first steps of a training, and loss scalers that do: the first three
// updates of each are right.
#include <assay/verification/optimizer_check.hpp>

#include <cmath>
#include <vector>

#include "mutants/narrow_backend.hpp"
#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::DType;
using compute::Tensor;
using test::TrainerHost;

models::DecoderTrainerConfig optimizer_of(const char* precision, const char* optimizer) {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.precision = workload::precision_policy(precision, "cuda");
  c.optimizer.name = optimizer;
  if (c.optimizer.name == "sgd") c.optimizer.momentum = 0.9F;
  return c;
}

// Gradients are drawn, scaled as the loss is: what the model computes does not matter here.
std::string late_updates_of(const TrainerHost& host, const models::DecoderTrainerConfig& config) {
  models::DecoderTrainer trainer(host.host(), config);
  trainer.setup(host.launch(), [&] { trainer.update(); });
  std::uint64_t step = 0;
  return verification::check_updates(trainer, [&] {
    ++step;
    const ParameterSet& set = trainer.parameters();
    const double deviation = 1e-3 * trainer.scaler().scale(trainer.backend());
    for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
      trainer.backend().run(op::RandomNormal{
          .x = set.gradient(id), .seed = step, .stream = id, .mean = 0, .std = static_cast<float>(deviation)});
    // As if activations had overflown on the way.
    if (deviation > 0x1p40) trainer.backend().run(op::Fill{.x = set.gradient(3).slice(0, 1, 1), .value = INFINITY});
    trainer.update();
  });
}

enum class LateFault {
  none,
  no_bias_correction,
  no_decay,
  momentum_reset,
  first_moment_reset,
  second_moment_kept,
  half_the_rate,
  two_steps_at_once,
  does_nothing
};
struct Begins {
  LateFault fault;
  std::int64_t at;         // the first step that is wrong
  std::int64_t every = 1;  // and of those after it, the ones whose number this divides
};

// As a device of 16 bits and loss scales, on which the optimizer is wrong from some step on.
class BreaksLate final : public test::BrokenBackend {
 public:
  BreaksLate(std::unique_ptr<compute::Backend> real, Begins begins)
      : BrokenBackend(std::make_unique<mutants::NarrowBackend>(std::move(real))), begins_(begins) {}
  void run_any(const compute::AnyOperation& any) override {
    if (!executes()) return real().run_any(any);
    compute::visit_operation(
        any, [&](const op::AdamW& op) { update(op); }, [&](const op::Sgd& op) { update(op); },
        [&](const op::Advance& op) {
          real().run(op);
          if (has_begun(op.step, LateFault::two_steps_at_once)) real().run(op);
        },
        [&](const auto& op) { real().run(op); });
  }

 private:
  std::int64_t number(const Tensor& step) {
    std::int64_t number = 0;
    real().synchronize();
    real().download(&number, step);
    return number;
  }
  bool has_begun(const Tensor& step, LateFault fault) {
    if (begins_.fault != fault) return false;
    const std::int64_t present = number(step);
    return present >= begins_.at && present % begins_.every == 0;
  }
  template <class Op>
  void update(Op op) {
    std::int64_t pretended = 0;
    const auto pretend = [&](std::int64_t step) {
      pretended = step;
      op.step = Tensor(&pretended, DType::i64, {1});
    };
    float rate = 0;
    if (has_begun(op.step, LateFault::does_nothing)) return;
    if (has_begun(op.step, LateFault::half_the_rate)) {
      real().download(&rate, op.lr);
      rate /= 2;
      op.lr = Tensor(&rate, DType::f32, {1});
    }
    if (has_begun(op.step, LateFault::no_decay)) op.options.weight_decay = 0;
    std::vector<std::byte> kept;
    if constexpr (std::is_same_v<Op, op::AdamW>) {
      if (has_begun(op.step, LateFault::first_moment_reset)) real().run(op::Fill{.x = op.m, .value = 0.0});
      if (has_begun(op.step, LateFault::second_moment_kept)) {
        kept.resize(op.v.bytes());
        real().download(kept.data(), op.v);
      }
      if (has_begun(op.step, LateFault::no_bias_correction)) pretend(1'000'000'000);
    } else {
      if (has_begun(op.step, LateFault::momentum_reset)) pretend(1);
    }
    real().run(op);
    real().synchronize();
    if constexpr (std::is_same_v<Op, op::AdamW>)
      if (!kept.empty()) real().upload(op.v, kept.data());
  }

  Begins begins_;
};

std::string reason_of_late(Begins begins, const char* precision, const char* optimizer) {
  const TrainerHost host(test::broken<BreaksLate>(begins));
  return test::wrong_result_of([&] { late_updates_of(host, optimizer_of(precision, optimizer)); });
}

TEST(LateUpdates, OfRightOptimizersAreRight) {
  for (const char* precision : {"fp32", "bf16", "bf16_pure", "fp16"})
    for (const char* optimizer : {"adamw", "sgd"}) {
      if (precision == std::string_view("fp16") && optimizer == std::string_view("sgd")) continue;
      const TrainerHost host(test::broken<BreaksLate>(Begins{LateFault::none, 0}));
      const std::string text = late_updates_of(host, optimizer_of(precision, optimizer));
      EXPECT_NE(text.find("updates 37, 3000 and 1000003 likewise"), std::string::npos) << precision << ": " << text;
      EXPECT_EQ(text.find("the loss scale grows after 2000 steps, and one that overflows later changes nothing") !=
                    std::string::npos,
                precision == std::string_view("fp16"))
          << text;
    }
}

TEST(LateUpdates, OfBf16MomentsAreRight) {
  const TrainerHost host(test::broken<BreaksLate>(Begins{LateFault::none, 0}));
  models::DecoderTrainerConfig config = optimizer_of("bf16", "adamw");
  config.model.precision.state = DType::bf16;
  EXPECT_NE(late_updates_of(host, config).find("updates 37, 3000 and 1000003 likewise"), std::string::npos);
}

TEST(LateUpdates, FindWhatAdamWDoesWrongFromTheFourthStepOn) {
  for (const char* precision : {"fp32", "bf16", "bf16_pure", "fp16"})
    for (const LateFault fault : {LateFault::no_bias_correction, LateFault::no_decay, LateFault::first_moment_reset,
                                  LateFault::second_moment_kept, LateFault::half_the_rate, LateFault::does_nothing}) {
      const std::string reason = reason_of_late({fault, 4}, precision, "adamw");
      EXPECT_NE(reason.find("after update "), std::string::npos)
          << precision << ' ' << static_cast<int>(fault) << ": " << reason;
      EXPECT_EQ(reason.find("after update 2 "), std::string::npos) << reason;
    }
}

TEST(LateUpdates, FindWhatSgdDoesWrongFromTheFourthStepOn) {
  for (const char* precision : {"fp32", "bf16", "bf16_pure"})
    for (const LateFault fault :
         {LateFault::no_decay, LateFault::momentum_reset, LateFault::half_the_rate, LateFault::does_nothing}) {
      const std::string reason = reason_of_late({fault, 4}, precision, "sgd");
      EXPECT_NE(reason.find("after update "), std::string::npos)
          << precision << ' ' << static_cast<int>(fault) << ": " << reason;
      EXPECT_EQ(reason.find("after update 2 "), std::string::npos) << reason;
    }
}

// Corrections that are left out when they are small: 4% of the first moment's, then of the second one's alone.
TEST(LateUpdates, FindWhatBeginsLate) {
  for (const char* precision : {"fp32", "bf16", "bf16_pure"})
    for (const std::int64_t at : {38, 500, 2000})
      EXPECT_NE(reason_of_late({LateFault::no_bias_correction, at}, precision, "adamw").find("after update 3000 "),
                std::string::npos)
          << precision << ' ' << at;
  EXPECT_NE(reason_of_late({LateFault::no_decay, 100'000}, "fp32", "adamw").find("after update 1000003 "),
            std::string::npos);
  EXPECT_NE(reason_of_late({LateFault::momentum_reset, 100'000}, "fp32", "sgd").find("after update 1000003 "),
            std::string::npos);
}

TEST(LateUpdates, FindWhatIsWrongInSomeOfTheSteps) {
  for (const std::int64_t every : {2, 10, 100, 1000})
    for (const char* optimizer : {"adamw", "sgd"})
      EXPECT_NE(reason_of_late({LateFault::does_nothing, 4, every}, "fp32", optimizer).find("after update 3000 "),
                std::string::npos)
          << every << ' ' << optimizer;
}

TEST(LateUpdates, FindAStepNumberThatRisesByTwo) {
  EXPECT_EQ(reason_of_late({LateFault::two_steps_at_once, 30}, "fp32", "adamw"),
            "after an update the optimizer is at step 38, expected 37");
}

// ---- loss scales ---------------------------------------------------------------------------------------------------

enum class ScaleFault { never_grows, grows_too_early, counts_on, late_skip_forgets_moments, late_skip_counts };

class BreaksScaler final : public test::BrokenBackend {
 public:
  BreaksScaler(std::unique_ptr<compute::Backend> real, ScaleFault fault)
      : BrokenBackend(std::make_unique<mutants::NarrowBackend>(std::move(real))), fault_(fault) {}
  void run_any(const compute::AnyOperation& any) override {
    if (!executes()) return real().run_any(any);
    compute::visit_operation(
        any,
        [&](op::UpdateLossScale op) {
          std::int64_t good = 0;
          real().download(&good, op.good_steps);
          if (fault_ == ScaleFault::never_grows) op.options.growth = 1;
          if (fault_ == ScaleFault::grows_too_early) --op.options.growth_interval;
          real().run(op);
          if (fault_ == ScaleFault::counts_on && good + 1 == op.options.growth_interval)
            real().upload(op.good_steps, &good);
        },
        [&](const op::AdamW& op) {
          real().run(op);
          float nonfinite = 0;
          std::int64_t step = 0;
          real().download(&nonfinite, op.loss_scale.nonfinite);
          real().download(&step, op.step);
          if (nonfinite == 0 || step < 4) return;
          if (fault_ == ScaleFault::late_skip_forgets_moments) real().run(op::Fill{.x = op.m, .value = 0.0});
          if (fault_ == ScaleFault::late_skip_counts) real().run(op::Advance{.step = Tensor(op.step)});
        },
        [&](const auto& op) { real().run(op); });
  }

 private:
  ScaleFault fault_;
};

std::string reason_of_late(ScaleFault fault) {
  const TrainerHost host(test::broken<BreaksScaler>(fault));
  return test::wrong_result_of([&] { late_updates_of(host, optimizer_of("fp16", "adamw")); });
}

TEST(LateUpdates, FindALossScaleThatGrowsAtTheWrongTime) {
  const std::string finite = "after a step whose gradients are finite the loss scaler has scale ";
  EXPECT_EQ(reason_of_late(ScaleFault::never_grows).rfind(finite, 0), 0U);
  EXPECT_NE(reason_of_late(ScaleFault::never_grows).find("0 good steps, 0 skipped steps, expected scale"),
            std::string::npos);
  EXPECT_NE(reason_of_late(ScaleFault::grows_too_early).find("0 good steps, 0 skipped steps, expected scale"),
            std::string::npos);
  EXPECT_NE(reason_of_late(ScaleFault::counts_on).find("1999 good steps, 0 skipped steps, expected scale"),
            std::string::npos);
}

TEST(LateUpdates, FindAStepThatIsSkippedLateAndChangesSomething) {
  EXPECT_EQ(
      reason_of_late(ScaleFault::late_skip_forgets_moments).rfind("a step that the loss scale skips has changed ", 0),
      0U);
  EXPECT_EQ(reason_of_late(ScaleFault::late_skip_counts),
            "after an update the optimizer is at step 1000003, expected 1000002");
}

}  // namespace
}  // namespace assay::train
