// What a trainer asks of a model before it takes any memory.
#include <gtest/gtest.h>
#include <assay/train/step_recording.hpp>
#include <assay/train/trainer.hpp>

#include <memory>
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
  explicit SmallModel(BufferPlan::Use use_of_loss, std::int64_t elements = 1) {
    loss_ = plan_.add("loss", DType::f32, {1}, use_of_loss);
    other_ = plan_.add("other", DType::f32, {elements});
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

// A device with graphs: a graph counts how often it was launched.
class GraphingBackend final : public test::BrokenBackend {
 public:
  GraphingBackend(std::unique_ptr<compute::Backend> real, int& launches)
      : BrokenBackend(std::move(real)), launches_(launches) {}
  const char* kind() const override { return "cuda"; }
  std::unique_ptr<compute::Graph> capture(const std::function<void()>& enqueue) override {
    class Counting final : public compute::Graph {
     public:
      explicit Counting(int& launches) : launches_(launches) {}
      void launch() override { ++launches_; }
      std::size_t node_count() const override { return 7; }

     private:
      int& launches_;
    };
    enqueue();
    return std::make_unique<Counting>(launches_);
  }

 private:
  int& launches_;
};

// It knows the addresses of what it was captured with: a verification may need more memory, and take it anew.
TEST(Trainer, AGraphIsNotLaunchedOnMemoryThatHasMoved) {
  int launches = 0;
  const test::TrainerHost host(
      [&launches](std::unique_ptr<compute::Backend> real) -> std::unique_ptr<compute::Backend> {
        return std::make_unique<GraphingBackend>(std::move(real), launches);
      });
  SmallModel model(BufferPlan::Use::result), as_large(BufferPlan::Use::result), larger(BufferPlan::Use::result, 5000);
  SmallTrainer trainer(host.host(), model);
  trainer.setup(host.launch());
  const auto graph = trainer.capture_as_is([] {}, Trainer::Marks::none);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->node_count(), 7u);
  graph->launch();
  trainer.lend_memory(as_large);
  graph->launch();
  EXPECT_EQ(launches, 2) << "nothing has moved";
  trainer.lend_memory(larger);
  try {
    graph->launch();
    FAIL() << "launched";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("capture it again"), std::string::npos) << e.what();
  }
  trainer.capture_as_is([] {}, Trainer::Marks::none)->launch();
  EXPECT_EQ(launches, 3);
}

TEST(Trainer, RefusesTwoParametersOfOneName) {
  ParameterSet set{workload::PrecisionPolicy{}};
  set.add({{"w", {16}}});
  EXPECT_THROW(set.add({{"w", {16}}}), Error);
}

}  // namespace
}  // namespace assay::train
