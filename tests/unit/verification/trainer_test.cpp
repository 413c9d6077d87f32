// What a trainer asks of a model before it takes any memory.
#include <gtest/gtest.h>
#include <assay/train/step_recording.hpp>
#include <assay/train/trainer.hpp>

#include <string>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

// Its step makes a loss, and then something else.
class SmallModel final : public Model {
 public:
  explicit SmallModel(BufferPlan::Use use_of_loss) {
    loss_ = plan_.add("loss", DType::f32, {1}, use_of_loss);
    other_ = plan_.add("other", DType::f32, {1});
    plan_step(plan_, nullptr, [&](compute::Backend& recorder) {
      recorder.run(op::Fill{.x = plan_[loss_], .value = 1});
      recorder.run(op::Fill{.x = plan_[other_], .value = 2});
    });
  }
  Tensor loss() const override { return plan_[loss_]; }

 private:
  BufferPlan::Id loss_ = 0, other_ = 0;
};

struct SmallTrainer : Trainer {
  SmallTrainer(const Host& host, Model& model) : Trainer(host, {}) {
    parameters().add({{"w", {16}}});
    use(model);
  }
  void forward() const override {}
  void backward(GradientListener*) const override {}
};

TEST(Trainer, RefusesALossInWhosePlaceSomethingElseLies) {
  const test::TrainerHost host;
  SmallModel right(BufferPlan::Use::result), wrong(BufferPlan::Use::temporary);
  EXPECT_NO_THROW(SmallTrainer(host.host(), right));
  try {
    SmallTrainer(host.host(), wrong);
    FAIL() << "taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the loss 'loss' is no result"), std::string::npos) << e.what();
  }
}

TEST(Trainer, RefusesTwoParametersOfOneName) {
  ParameterSet set{workload::PrecisionPolicy{}};
  set.add({{"w", {16}}});
  EXPECT_THROW(set.add({{"w", {16}}}), Error);
}

}  // namespace
}  // namespace assay::train
