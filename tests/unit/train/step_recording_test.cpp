// A plan that is derived from a step: lives, lanes, the places of gradients, and what a step must not do.
#include <gtest/gtest.h>
#include <assay/train/step_recording.hpp>

#include <string>
#include <vector>

namespace assay::train {
namespace {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using Use = BufferPlan::Use;

constexpr std::size_t kilobyte = 1024;  // of each buffer below

struct Chain {  // a -> b -> c -> ...
  BufferPlan plan;
  BufferPlan::Id add(const char* name, Use use = Use::temporary) { return plan.add(name, DType::f32, {16, 16}, use); }
  void copy(Backend& b, BufferPlan::Id from, BufferPlan::Id to) const {
    b.run(op::Copy{.to = plan[to], .from = plan[from]});
  }
  void fill(Backend& b, BufferPlan::Id x) const { b.run(op::Fill{.x = plan[x], .value = 0}); }
  std::pair<int, int> life(BufferPlan::Id id) const { return {plan.buffers()[id].first, plan.buffers()[id].last}; }
};

TEST(StepRecording, ABufferLivesFromItsFirstWriteToItsLastUse) {
  Chain step;
  const auto a = step.add("a"), b = step.add("b"), c = step.add("c"), d = step.add("d");
  plan_step(step.plan, nullptr, [&](Backend& recorder) {
    step.fill(recorder, a);
    step.copy(recorder, a, b);
    step.copy(recorder, b, c);
    step.copy(recorder, b, d);
  });
  EXPECT_EQ(step.life(a), std::pair(0, 1));
  EXPECT_EQ(step.life(b), std::pair(1, 3));
  EXPECT_EQ(step.life(c), std::pair(2, 2));
  EXPECT_EQ(step.life(d), std::pair(3, 3));
  EXPECT_EQ(step.plan.total_bytes(), 2 * kilobyte);
}

// Its size and its parts' have wrapped, so that parts seem to lie beyond its end.
TEST(StepRecording, ABufferBeyondAllMemoryIsRefusedByItsOwnName) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  Chain step;
  const auto a = step.add("a"), logits = step.plan.add("logits", DType::f32, {large, large});
  const auto b = step.add("b");
  for (const std::int64_t rows : {std::int64_t{1}, large}) try {
      plan_step(step.plan, nullptr, [&](Backend& recorder) {
        step.fill(recorder, a);
        recorder.run(op::Fill{.x = step.plan[logits].slice(0, 0, rows), .value = 0});
        step.fill(recorder, b);
      });
      ADD_FAILURE() << rows;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_OUT_OF_MEMORY) << rows << ": " << e.what();
      EXPECT_TRUE(std::string(e.what()).starts_with("the buffer 'logits' of 1099511627776 x 1099511627776 elements"))
          << rows << ": " << e.what();
    }
}

TEST(StepRecording, PartsOfABufferAreUsesOfIt) {
  Chain step;
  const auto a = step.add("a"), b = step.add("b");
  plan_step(step.plan, nullptr, [&](Backend& recorder) {
    recorder.run(op::Fill{.x = step.plan[a].slice(0, 0, 8), .value = 0});
    recorder.run(op::Fill{.x = step.plan[a].slice(0, 8, 8), .value = 0});
    step.fill(recorder, b);
    recorder.run(op::Copy{.to = step.plan[b], .from = step.plan[a].transposed(0, 1)});
  });
  EXPECT_EQ(step.life(a), std::pair(0, 3));
  EXPECT_EQ(step.life(b), std::pair(2, 3));
}

TEST(StepRecording, ResultsStayAndWhatOutlivesStepsIsAlwaysThere) {
  Chain step;
  const auto table = step.add("table", Use::outlives_steps), result = step.add("result", Use::result);
  const auto last = step.add("last");
  plan_step(step.plan, nullptr, [&](Backend& recorder) {
    step.copy(recorder, table, result);
    step.fill(recorder, last);
    step.fill(recorder, last);
  });
  EXPECT_EQ(step.life(table), std::pair(0, 2));
  EXPECT_EQ(step.life(result), std::pair(0, 2));
  EXPECT_EQ(step.plan.total_bytes(), 3 * kilobyte);
}

TEST(StepRecording, WhatTheStepDoesNotUseTakesNoMemory) {
  Chain step;
  const auto used = step.add("used"), unused = step.add("unused");
  plan_step(step.plan, nullptr, [&](Backend& recorder) { step.fill(recorder, used); });
  EXPECT_EQ(step.plan.total_bytes(), kilobyte);
  std::vector<std::byte> memory(kilobyte);
  step.plan.bind(nullptr, memory.data());
  EXPECT_EQ(step.plan[used].data, memory.data());
  EXPECT_FALSE(step.plan[unused]);
}

TEST(StepRecording, WhatTheSideLaneUsesLivesUntilTheJoin) {
  for (const bool joins : {false, true}) {
    Chain step;
    const auto a = step.add("a"), b = step.add("b"), c = step.add("c");
    plan_step(step.plan, nullptr, [&](Backend& recorder) {
      step.fill(recorder, a);
      recorder.begin_side();
      step.copy(recorder, a, b);
      recorder.end_side();
      step.fill(recorder, c);
      if (joins) recorder.join_side();
      step.fill(recorder, c);
      step.fill(recorder, c);
    });
    EXPECT_EQ(step.life(a).second, joins ? 3 : 4);
    EXPECT_EQ(step.life(b), std::pair(1, joins ? 3 : 4));
    EXPECT_EQ(step.plan.total_bytes(), 3 * kilobyte) << "c may not lie where the side lane still reads";
  }
}

// Between the two parts of a step others run, which use the borrowed memory as well.
TEST(StepRecording, OfTwoPartsWhatIsAliveBetweenThemHasOwnMemory) {
  Chain step;
  const auto kept = step.add("kept"), in_first = step.add("in_first"), in_second = step.add("in_second"),
             result = step.add("result", Use::result), table = step.add("table", Use::outlives_steps);
  plan_step_in_two_parts(
      step.plan,
      [&](Backend& recorder) {
        step.fill(recorder, in_first);
        step.copy(recorder, in_first, kept);
      },
      [&](Backend& recorder) {
        step.copy(recorder, kept, in_second);
        step.copy(recorder, in_second, result);
      });
  EXPECT_EQ(step.plan.own_bytes(), 2 * kilobyte) << "what is kept, and the table";
  EXPECT_EQ(step.plan.borrowed_bytes(), 2 * kilobyte) << "the second part's two; the first part's lies in their place";
  std::vector<char> borrowed(2 * kilobyte), own(2 * kilobyte);
  step.plan.bind(borrowed.data(), own.data());
  const auto lies_in = [&](BufferPlan::Id id, const std::vector<char>& memory) {
    const auto* const at = static_cast<const char*>(step.plan[id].data);
    return memory.data() <= at && at + kilobyte <= memory.data() + memory.size();
  };
  for (const auto id : {kept, table}) EXPECT_TRUE(lies_in(id, own)) << id;
  for (const auto id : {in_first, in_second, result}) EXPECT_TRUE(lies_in(id, borrowed)) << id;
  EXPECT_NE(step.plan[kept].data, step.plan[table].data);
  EXPECT_NE(step.plan[in_second].data, step.plan[result].data);
}

TEST(StepRecording, ReadingWhatWasNotWrittenIsRefused) {
  const auto reason = [](const auto& step_of) {
    Chain step;
    const auto a = step.add("first"), b = step.add("second");
    try {
      plan_step(step.plan, nullptr, [&](Backend& recorder) { step_of(step, recorder, a, b); });
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(reason([](const Chain& step, Backend& b, auto x, auto y) { step.copy(b, x, y); }).find("'first' is read"),
            std::string::npos);
  // To add to something is to read it.
  const auto product = [](bool accumulate) {
    return [=](const Chain& step, Backend& b, auto x, auto y) {
      step.fill(b, x);
      b.run(op::Matmul{.a = step.plan[x], .b = step.plan[x], .c = step.plan[y], .accumulate = accumulate});
    };
  };
  EXPECT_EQ(reason(product(false)), "");
  EXPECT_NE(reason(product(true)).find("'second' is read"), std::string::npos);
}

// Two matrices of 1 KiB: the first one's gradient is written first.
ParameterSet two_matrices() {
  ParameterSet set{workload::PrecisionPolicy{}};
  set.add({{"late", {16, 16}}});
  set.add({{"early", {16, 16}}});
  return set;
}

TEST(StepRecording, AGradientsPlaceIsFreeUntilItIsWritten) {
  const ParameterSet set = two_matrices();
  Chain step;
  const auto a = step.add("a"), b = step.add("b");
  plan_step(step.plan, &set, [&](Backend& recorder) {
    step.fill(recorder, a);
    recorder.run(op::Copy{.to = set.gradient(1), .from = step.plan[a]});
    step.copy(recorder, a, b);
    recorder.run(op::Copy{.to = set.gradient(0), .from = step.plan[b]});
  });
  ASSERT_EQ(step.plan.reserved().size(), 2U);
  EXPECT_EQ(step.plan.reserved()[0].first, 3);
  EXPECT_EQ(step.plan.reserved()[1].first, 1);
  EXPECT_EQ(step.plan.reserved()[1].offset, kilobyte);
  EXPECT_EQ(step.plan.buffers()[a].offset, 0U) << "in the place of the gradient that comes last";
  EXPECT_EQ(step.plan.own_bytes(), kilobyte) << "b is read when the last gradient is written";
}

// An optimizer reads it, whoever has written it.
TEST(StepRecording, AGradientThatTheStepDoesNotWriteIsReservedThroughout) {
  const ParameterSet set = two_matrices();
  Chain step;
  const auto a = step.add("a");
  plan_step(step.plan, &set, [&](Backend& recorder) {
    step.fill(recorder, a);
    recorder.run(op::Copy{.to = set.gradient(1), .from = step.plan[a]});
  });
  ASSERT_EQ(step.plan.reserved().size(), 2U);
  EXPECT_EQ(step.plan.reserved()[0].first, 0);
  EXPECT_EQ(step.plan.own_bytes(), kilobyte);
}

TEST(StepRecording, AddingToAGradientThatWasNotWrittenIsRefused) {
  const ParameterSet set = two_matrices();
  Chain step;
  const auto a = step.add("a");
  try {
    plan_step(step.plan, &set, [&](Backend& recorder) {
      step.fill(recorder, a);
      recorder.run(op::Matmul{.a = step.plan[a], .b = step.plan[a], .c = set.gradient(0), .accumulate = true});
    });
    FAIL() << "planned";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the gradient by 'late' is read"), std::string::npos) << e.what();
  }
}

TEST(StepRecording, GoingBeyondABufferIsRefused) {
  Chain step;
  const auto a = step.add("a");
  step.add("b");
  EXPECT_THROW(plan_step(step.plan, nullptr,
                         [&](Backend& recorder) {
                           const compute::Tensor longer(step.plan[a].data, DType::f32, {32, 16});
                           recorder.run(op::Fill{.x = longer, .value = 0});
                         }),
               Error);
}

TEST(StepRecording, APlanWhoseLivesNobodyGaveIsRefused) {
  BufferPlan plan;
  plan.add("a", DType::f32, {64});
  EXPECT_THROW(plan.solve(), Error);
}

TEST(StepRecording, AnArenaWithGapsIsReservedThroughout) {
  ParameterSet set{workload::PrecisionPolicy{}};
  set.add({{"vector", {5}}});
  set.add({{"matrix", {16, 16}}});
  Chain step;
  const auto a = step.add("a");
  plan_step(step.plan, &set, [&](Backend& recorder) {
    step.fill(recorder, a);
    recorder.run(op::Fill{.x = set.gradient(0), .value = 0});
  });
  ASSERT_EQ(step.plan.reserved().size(), 1U);
  EXPECT_EQ(step.plan.own_bytes(), kilobyte);
}

}  // namespace
}  // namespace assay::train
