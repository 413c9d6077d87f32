// The account that the steps of a training keep of themselves, and what workloads without a training count theirs by.
#include <gtest/gtest.h>
#include <assay/compute/counted_backend.hpp>
#include <assay/train/step_account.hpp>
#include <assay/train/training_step.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/spoiled_results.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

std::vector<double> values_of(const Account& account, std::uint64_t step) {
  std::vector<double> values;
  for (std::uint64_t mark = 0; mark < account.marks_per_step; ++mark)
    values.push_back(account.marks.at(static_cast<std::size_t>(step * account.marks_per_step + mark)).value);
  return values;
}

// Steps of a training on the CPU that a test leaves parts out of.
class TrainingSteps : public testing::Test {
 protected:
  TrainingSteps() : trainer_(host_.host(), test::small_trainer()) { test::set_up(trainer_, host_); }

  void step(bool backward = true, bool update = true) {
    accounted_step(trainer_, [&] {
      trainer_.forward();
      if (backward) trainer_.backward();
      if (update) trainer_.update();
    });
  }

  test::TrainerHost host_;
  models::DecoderTrainer trainer_;
};

TEST_F(TrainingSteps, EachOneIsCountedAndLeavesOtherMarks) {
  EXPECT_EQ(trainer_.account().steps, 0U);
  EXPECT_TRUE(trainer_.account().marks.empty());
  for (int i = 0; i < 4; ++i) step();
  const Account account = trainer_.account();
  EXPECT_EQ(account.steps, 4U);
  ASSERT_EQ(account.marks.size(), 4 * account.marks_per_step);
  for (std::uint64_t i = 0; i < 4; ++i)
    for (std::uint64_t j = 0; j < i; ++j) {
      const std::vector<double> one = values_of(account, i), other = values_of(account, j);
      for (std::size_t mark = 0; mark < one.size(); ++mark)
        EXPECT_NE(one[mark], other[mark]) << i << " " << j << " " << mark;
    }
  for (const StepMark& mark : account.marks) EXPECT_GE(mark.magnitude, std::abs(mark.value));
}

TEST_F(TrainingSteps, TheSameFromTheStartLeaveTheSameMarks) {
  for (int i = 0; i < 3; ++i) step();
  const Account first = trainer_.account();
  trainer_.start();
  EXPECT_EQ(trainer_.account().steps, 0U);
  for (int i = 0; i < 2; ++i) step();
  const Account again = trainer_.account();
  EXPECT_EQ(again.steps, 2U);
  for (std::uint64_t i = 0; i < 2; ++i) EXPECT_EQ(values_of(again, i), values_of(first, i));
}

TEST_F(TrainingSteps, OneWithoutABackwardIsWrong) {
  step();
  step(false, false);
  trainer_.update();  // so that the updates are as many as the steps
  const std::string found = test::wrong_result_of([&] { (void)trainer_.account(); });
  EXPECT_NE(found.find("step 2 of 2 has left results that are not finite"), std::string::npos) << found;
}

TEST_F(TrainingSteps, OneWithoutAForwardIsWrong) {
  step();
  accounted_step(trainer_, [&] { trainer_.update(); });
  const std::string found = test::wrong_result_of([&] { (void)trainer_.account(); });
  EXPECT_NE(found.find("step 2 of 2 has left no finite number for its loss"), std::string::npos) << found;
}

TEST_F(TrainingSteps, OneWithoutAnUpdateIsWrong) {
  step();
  step(true, false);
  const std::string found = test::wrong_result_of([&] { (void)trainer_.account(); });
  EXPECT_NE(found.find("in 2 steps the optimizer has made 1 updates"), std::string::npos) << found;
}

TEST_F(TrainingSteps, AnUpdateBesideTheStepsIsWrong) {
  step();
  trainer_.update();
  EXPECT_NE(test::wrong_result_of([&] { (void)trainer_.account(); }), "");
}

// An account: a tensor of results, which each step fills.
class Results : public testing::Test {
 protected:
  static constexpr std::int64_t elements = 100;

  Results()
      : backend_(workload::open_backend(host_.host(), host_.launch())),
        memory_(host_.host(), ASSAY_MEMORY_DATA, (elements + 1) * sizeof(float), "results"),
        results_(memory_.data(), DType::f32, {elements}),
        loss_(memory_.data<float>() + elements, DType::f32, {1}) {}

  void step(const StepAccount& account, float value) {
    const StepAccount::Subjects subjects{loss_, results_, {}};
    account.begin_step(*backend_, subjects);
    backend_->run(op::Fill{.x = loss_, .value = value});
    backend_->run(op::Fill{.x = results_, .value = 2 * value});
    account.end_step(*backend_, subjects);
  }

  test::TrainerHost host_;
  std::unique_ptr<compute::Backend> backend_;
  DeviceMemory memory_;
  Tensor results_, loss_;
};

TEST_F(Results, MoreStepsThanAreKeptAreCountedAndTheFirstHalfIsMarked) {
  StepAccount account;
  EXPECT_FALSE(account.is_kept());
  account.reset(*backend_);  // and does nothing
  account.take_memory(host_.host(), *backend_, {0, elements - 1});
  EXPECT_TRUE(account.is_kept());
  constexpr std::int64_t steps = StepAccount::kept_steps + 100;
  for (std::int64_t i = 0; i < steps; ++i) step(account, static_cast<float>(i));
  Account found = account.read(*backend_, 0.25);
  EXPECT_EQ(found.steps, static_cast<std::uint64_t>(steps));
  EXPECT_EQ(found.tolerance, 0.25);
  EXPECT_EQ(found.marks.size(), StepAccount::kept_steps / 2 * StepAccount::marks_per_step);
  for (std::uint64_t i = 0; i < StepAccount::kept_steps / 2; ++i) {
    const auto loss = static_cast<double>(i);
    EXPECT_EQ(values_of(found, i), (std::vector<double>{loss, 4 * loss, 0})) << i;
  }
  account.reset(*backend_);
  found = account.read(*backend_, 0);
  EXPECT_EQ(found.steps, 0U);
  EXPECT_TRUE(found.marks.empty());
  step(account, 7);
  EXPECT_EQ(values_of(account.read(*backend_, 0), 0), (std::vector<double>{7, 28, 0}));
}

TEST_F(Results, ALateStepWithoutALossIsFound) {
  StepAccount account;
  account.take_memory(host_.host(), *backend_, {});
  for (std::int64_t i = 0; i < StepAccount::kept_steps; ++i) step(account, 1);
  account.begin_step(*backend_, {loss_, {}, {}});
  account.end_step(*backend_, {loss_, {}, {}});
  const std::string found = test::wrong_result_of([&] { (void)account.read(*backend_, 0); });
  EXPECT_NE(found.find("step 8193 of 8193 has left no finite number for its loss"), std::string::npos) << found;
}

// What one H200 had, as shares of the magnitude, is allowed; twice the gradients of a step are not.
TEST(StepAccountMarks, OfAStepThatDoesNotRepeatToTheBitMayDifferByWhatTheStepsBeforeAdd) {
  Account account;
  account.marks_per_step = 3;
  account.tolerance = 0x1p-12;
  account.marks.assign(3 * 200, {.value = 1, .magnitude = 1});
  StepAccount::allow_for_earlier_steps(account, false);
  const auto allowed = [&](std::size_t step, std::size_t kind) {
    return account.tolerance * account.marks[3 * (step - 1) + kind].magnitude;
  };
  for (const std::size_t kind : {0, 2}) EXPECT_EQ(allowed(1, kind), 0x1p-12);
  EXPECT_GT(allowed(1, 1), 3 * 2.8e-4);
  EXPECT_LT(allowed(1, 1), 4 * 2.8e-4);
  for (const auto& [step, found] : {std::pair<std::size_t, double>{2, 1e-3}, {5, 6e-3}, {6, 7.8e-3}, {10, 4.1e-3}})
    EXPECT_GT(allowed(step, 1), 2 * found) << step;
  EXPECT_LT(allowed(200, 1), 0.07);
  EXPECT_EQ(allowed(200, 1), allowed(17, 1));
  EXPECT_EQ(allowed(200, 0), allowed(2, 0));
}

TEST(StepAccountMarks, OfTokensThatPickTheirExpertsMayDifferByThoseThatGoElsewhere) {
  const auto shares = [](bool picks) {
    Account account;
    account.marks_per_step = 3;
    account.tolerance = 0x1p-12;
    account.marks.assign(3 * 40, {.value = 1, .magnitude = 1});
    StepAccount::allow_for_earlier_steps(account, picks);
    return account;
  };
  const Account picking = shares(true), other = shares(false);
  const double seen_at_second_step = 5.1e-3;
  EXPECT_GT(picking.tolerance * picking.marks[3 + 1].magnitude, 2 * seen_at_second_step);
  EXPECT_EQ(picking.marks[1].magnitude, other.marks[1].magnitude);
  for (std::size_t step = 4; step < 40; ++step)
    EXPECT_EQ(picking.marks[3 * step + 1].magnitude, other.marks[3 * step + 1].magnitude) << step;
  EXPECT_LE(picking.tolerance * picking.marks[3 + 1].magnitude, 4 * seen_at_second_step);
  for (const std::size_t kind : {0, 2}) EXPECT_EQ(picking.marks[3 + kind].magnitude, other.marks[3 + kind].magnitude);
}

TEST(StepAccountPlaces, AreSpreadAndHaveTheEndsOfEachRange) {
  const auto has = [](const std::vector<std::int64_t>& places, std::int64_t place) {
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  EXPECT_TRUE(StepAccount::spread({}).empty());
  EXPECT_TRUE(StepAccount::spread({{5, 5}}).empty());
  EXPECT_EQ(StepAccount::spread({{3, 3}, {5, 6}}), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(StepAccount::spread({{0, 3}}), (std::vector<std::int64_t>{0, 1, 2}));
  const std::vector<std::int64_t> places =
      StepAccount::spread({{0, 1'000'000}, {2'000'000, 2'000'010}, {3'000'000, 3'000'001}});
  EXPECT_LE(places.size(), static_cast<std::size_t>(StepAccount::usual_places));
  EXPECT_GT(places.size(), static_cast<std::size_t>(StepAccount::usual_places) / 2);
  for (const std::int64_t end : {0, 999'999, 2'000'000, 2'000'009}) EXPECT_TRUE(has(places, end)) << end;
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_EQ(std::adjacent_find(places.begin(), places.end()), places.end()) << "one of them twice";
  // Small ranges behind a large one, as a model's last parameters are; and more of them than places.
  std::vector<ElementRange> many{{0, 1'000'000}};
  for (std::int64_t i = 0; i < 400; ++i) many.push_back({1'000'000 + 10 * i, 1'000'005 + 10 * i});
  const std::vector<std::int64_t> of_many = StepAccount::spread(many);
  EXPECT_LE(of_many.size(), static_cast<std::size_t>(StepAccount::most_places));
  for (const ElementRange& range : many)
    EXPECT_TRUE(has(of_many, range.begin) && has(of_many, range.end - 1)) << range.begin;
  for (std::int64_t i = 400; i < 3000; ++i) many.push_back({1'000'000 + 10 * i, 1'000'005 + 10 * i});
  const std::vector<std::int64_t> of_more = StepAccount::spread(many);
  EXPECT_EQ(of_more.size(), static_cast<std::size_t>(StepAccount::most_places));
  EXPECT_GT(of_more.back(), 1'029'900) << "the last ranges have some, too";
}

TEST_F(Results, SpoiledOnesShowUntilTheyAreWritten) {
  workload::SpoiledResults spoiled;
  spoiled.take_memory(host_.host(), *backend_, {{"y", elements}, {"later", 3}, {"nothing", 0}});
  const std::vector<Tensor> tensors{results_.view({10, 10}), Tensor(), Tensor()};
  backend_->run(op::Fill{.x = results_, .value = -2});
  EXPECT_EQ(spoiled.read(*backend_, tensors)[0].value, -2.0 * elements);
  spoiled.spoil(*backend_, tensors);
  const std::string found = test::wrong_result_of([&] { (void)spoiled.read(*backend_, tensors); });
  EXPECT_NE(found.find("the measured steps have not written y"), std::string::npos) << found;
  backend_->run(op::Fill{.x = results_.slice(0, 0, elements - 1), .value = 3});  // all but the last one
  EXPECT_NE(test::wrong_result_of([&] { (void)spoiled.read(*backend_, tensors); }), "");
  backend_->run(op::Fill{.x = results_, .value = 3});
  const std::vector<StepMark> marks = spoiled.read(*backend_, tensors);
  ASSERT_EQ(marks.size(), 3U);
  EXPECT_EQ(marks[0].value, 3.0 * elements);
  EXPECT_EQ(marks[0].magnitude, 3.0 * elements);
  EXPECT_EQ(marks[1].magnitude, 0);
}

TEST_F(Results, OperationsAreCountedWhereTheyAreCarriedOut) {
  compute::CountedBackend counted(std::move(backend_));
  const op::Fill fill{.x = results_, .value = 1};
  counted.run(fill);
  counted.begin_steps();
  counted.set_mode(compute::Mode::prepare);
  counted.run(fill), counted.run(fill);
  counted.set_mode(compute::Mode::execute);
  EXPECT_EQ(counted.prepared(), 2U);
  EXPECT_EQ(counted.steps(counted.prepared()), 0U);
  for (int i = 0; i < 6; ++i) counted.run(fill);
  counted.run(op::SpoilPlaces{.x = {}, .places = {}, .loss = loss_});  // of the account
  EXPECT_EQ(counted.executed(), 6U);
  EXPECT_EQ(counted.steps(2), 3U);
  const std::string found = test::wrong_result_of([&] { (void)counted.steps(4); });
  EXPECT_NE(found.find("6 operations were carried out, which are no whole number of steps of 4"), std::string::npos)
      << found;
  EXPECT_NE(test::wrong_result_of([&] { (void)counted.steps(0); }), "");
  backend_ = workload::open_backend(host_.host(), host_.launch());
}

// A device with graphs, as far as a count needs them.
class Graphing final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  std::unique_ptr<compute::Graph> capture(const std::function<void()>& enqueue) override {
    struct Empty final : compute::Graph {
      void launch() override {}
      std::size_t node_count() const override { return 2; }
    };
    enqueue();
    return std::make_unique<Empty>();
  }
};

TEST_F(Results, ReplaysCountForAllOperationsOfTheirGraph) {
  compute::CountedBackend counted(std::make_unique<Graphing>(std::move(backend_)));
  const op::Fill fill{.x = results_, .value = 1};
  {
    const std::unique_ptr<compute::Graph> graph = counted.capture([&] { counted.run(fill), counted.run(fill); });
    EXPECT_EQ(counted.executed(), 0U) << "what is captured is not carried out";
    EXPECT_EQ(graph->node_count(), 2U);
    for (int i = 0; i < 3; ++i) graph->launch();
    counted.run(fill);
    EXPECT_EQ(counted.executed(), 7U);
  }
  EXPECT_THROW((void)counted.capture([] { throw Error(ASSAY_UNSUPPORTED, "no"); }), Error);
  counted.run(fill);
  EXPECT_EQ(counted.executed(), 8U) << "after a capture that failed";
}

}  // namespace
}  // namespace assay::train
