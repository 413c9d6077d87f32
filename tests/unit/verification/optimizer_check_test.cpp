// Updates against float64, also where the configured one is less than a weight's rounding.
#include <assay/verification/optimizer_check.hpp>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::DType;
using compute::Tensor;
using test::TrainerHost;

// bf16 throughout, by SGD at a rate whose updates are far below the rounding of most weights.
models::DecoderTrainerConfig barely_moving(float momentum = 0) {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.precision = workload::precision_policy("bf16_pure", "cpu");
  c.optimizer.name = "sgd", c.optimizer.lr = 1e-6F, c.optimizer.momentum = momentum, c.optimizer.weight_decay = 0;
  return c;
}

// Gradients are drawn, those of norms much smaller than others: not every CPU has products in bf16.
std::string updates_of(const TrainerHost& host, const models::DecoderTrainerConfig& config) {
  models::DecoderTrainer trainer(host.host(), config);
  trainer.setup(host.launch(), [&] { trainer.update(); });
  std::uint64_t step = 0;
  return verification::check_updates(trainer, [&] {
    ++step;
    const ParameterSet& set = trainer.parameters();
    for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
      trainer.backend().run(op::RandomNormal{.x = set.gradient(id),
                                             .seed = step,
                                             .stream = id,
                                             .mean = 0,
                                             .std = set.all()[id].dims.size() == 1 ? 3e-5F : 1e-3F});
    trainer.update();
  });
}

TEST(OptimizerCheck, MovesTheWeightsOfEveryParameter) {
  const TrainerHost host;
  for (const char* precision : {"fp32", "bf16", "bf16_pure"})
    for (const char* name : {"adamw", "sgd"}) {
      models::DecoderTrainerConfig config = barely_moving();
      config.model.precision = workload::precision_policy(precision, "cpu");
      config.optimizer.name = name;
      const std::string text = updates_of(host, config);
      EXPECT_NE(text.find("weights of 21 of them moved by more than that"), std::string::npos)
          << precision << ' ' << name << ": " << text;
    }
}

TEST(OptimizerCheck, MovesMuonsMatricesAndTheRest) {
  const TrainerHost host;
  for (const char* precision : {"fp32", "bf16", "bf16_pure"}) {
    models::DecoderTrainerConfig config = test::small_trainer();
    config.model.precision = workload::precision_policy(precision, "cpu");
    config.optimizer.name = "muon";
    const std::string text = updates_of(host, config);
    EXPECT_NE(text.find("weights of 7 of the 7 that are no matrices moved"), std::string::npos) << text;
    EXPECT_NE(text.find("of 3 of 3 batches, made orthogonal"), std::string::npos) << text;
    EXPECT_NE(text.find("those of 3 batches moved"), std::string::npos) << precision << ": " << text;
  }
}

// Beyond the steps that converge singular values move about, and their roundings grow.
TEST(OptimizerCheck, HoldsMoreStepsOfMuonThanConverge) {
  const TrainerHost host;
  for (const std::int64_t steps : {16, 20, 24}) {
    models::DecoderTrainerConfig config = test::small_trainer();
    config.optimizer.name = "muon", config.optimizer.muon.steps = steps;
    EXPECT_EQ(test::wrong_result_of([&] { updates_of(host, config); }), "") << steps;
  }
}

// A batch's first product has the coefficient of another iteration, by two percent.
class BreaksCoefficient final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    const auto* const product = compute::operation_cast<op::Matmul>(any);
    if (!product || product->residual_scale != NewtonSchulz::a) return real().run_any(any);
    op::Matmul changed = *product;
    changed.residual_scale *= 1.02F;
    real().run(changed);
  }
};

TEST(OptimizerCheck, FindsAnotherIterationThanMuons) {
  const TrainerHost host(test::broken<BreaksCoefficient>());
  models::DecoderTrainerConfig config = test::small_trainer();
  config.optimizer.name = "muon";
  for (const std::int64_t steps : {5, 20}) {
    config.optimizer.muon.steps = steps;
    const std::string reason = test::wrong_result_of([&] { updates_of(host, config); });
    EXPECT_NE(reason.find("from the one that float64 makes orthogonal"), std::string::npos) << reason;
  }
}

TEST(OptimizerCheck, FindsAStepThatLeavesTheGradientsOfAnEarlierOne) {
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), barely_moving());
  trainer.setup(host.launch(), [&] { trainer.update(); });
  int step = 0;
  const auto take_step = [&] {
    const ParameterSet& set = trainer.parameters();
    for (ParameterSet::Id id = 0; step == 0 && id < set.all().size(); ++id)
      trainer.backend().run(op::Fill{.x = set.gradient(id), .value = 1e-3});
    ++step;
    trainer.update();
  };
  try {
    verification::check_updates(trainer, take_step);
    FAIL() << "expected a wrong result";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT) << e.what();
    EXPECT_EQ(step, 2);
  }
}

enum class Fault { does_nothing, half_the_rate, other_sign };

class BreaksSgd final : public test::BrokenBackend {
 public:
  BreaksSgd(std::unique_ptr<compute::Backend> real, Fault fault) : BrokenBackend(std::move(real)), fault_(fault) {}
  void run_any(const compute::AnyOperation& any) override {
    const auto* const sgd = compute::operation_cast<op::Sgd>(any);
    if (!sgd || !executes()) return real().run_any(any);
    if (fault_ == Fault::does_nothing) return;
    float rate = 0;
    real().download(&rate, sgd->lr);
    const float changed = fault_ == Fault::half_the_rate ? rate / 2 : -rate;
    real().upload(sgd->lr, &changed);
    real().run_any(any);
    real().upload(sgd->lr, &rate);
  }

 private:
  Fault fault_;
};

// With the configured rate all of these are within the rounding of the weights.
TEST(OptimizerCheck, FindsAnUpdateThatIsLessThanRounding) {
  for (const Fault fault : {Fault::does_nothing, Fault::half_the_rate, Fault::other_sign}) {
    const TrainerHost host(test::broken<BreaksSgd>(fault));
    const std::string reason = test::wrong_result_of([&] { updates_of(host, barely_moving()); });
    EXPECT_NE(reason.find("after update 2 a weight of"), std::string::npos)
        << static_cast<int>(fault) << ": " << reason;
  }
}

}  // namespace
}  // namespace assay::train
