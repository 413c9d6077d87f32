// A path that follows another one's sides of ReLUs takes them where states are within rounding of 0, and refuses those
// that are not.
#include <assay/verification/relu_sides.hpp>

#include "harness.hpp"

namespace assay::conformance {
namespace {

using verification::FollowsSides;
using verification::NotesSides;
using verification::ReluSides;

constexpr double error = 1e-3;

// Relu of `x` by a backend that notes, then of `other` by one that follows.
struct Followed {
  Values y;
  std::string text;
};
Followed followed(DType type, const Values& x, const Values& other) {
  const auto n = static_cast<std::int64_t>(x.size());
  const DeviceTensor of_timed(type, {n}, x), of_other(type, {n}, other), y(type, {n});
  ReluSides sides{.error = error, .of_operations = {}};
  NotesSides noting(backend(), sides);
  FollowsSides following(backend(), sides);
  run([&] { backend().run(op::ActivationForward{.kind = compute::Activation::relu, .x = of_timed, .y = y}); });
  noting.run(op::ActivationForward{.kind = compute::Activation::relu, .x = of_timed, .y = y});
  following.run(op::BiasReluDropoutForward{.x = of_other, .y = y});
  return {y.read(), following.text()};
}

TEST(ReluSides, StatesWithinRoundingTakeTheSideOfTheFirst) {
  for (const DType type : float_types()) {
    const Followed f = followed(type, {1, -1, 0x1p-12, -0x1p-12, 0.5}, {1, -1, -0x1p-12, 0x1p-12, 0.5});
    EXPECT_EQ(f.y[0], 1);
    EXPECT_EQ(f.y[1], 0);
    EXPECT_GT(f.y[2], 0);
    EXPECT_LT(f.y[2], 1e-6);
    EXPECT_EQ(f.y[3], 0);
    EXPECT_EQ(f.y[4], 0.5);
    EXPECT_EQ(f.text.rfind("2 of 5 states", 0), 0U) << f.text;
  }
}

TEST(ReluSides, StatesBeyondRoundingAreWrongOnWhicheverPathTheyArePositive) {
  for (const DType type : float_types()) {
    for (const bool on_first : {true, false}) {
      const Values positive = {1, 0.01, 1}, negative = {1, -0.01, 1};
      std::string text;
      EXPECT_EQ(
          status_of([&] { followed(type, on_first ? positive : negative, on_first ? negative : positive); }, &text),
          ASSAY_WRONG_RESULT);
      EXPECT_NE(text.find("state 1 of ReLU 0"), std::string::npos) << text;
    }
  }
}

TEST(ReluSides, AnOperationWithoutCounterpartIsRefused) {
  const DeviceTensor x(DType::f32, {3}, {1, 2, 3}), y(DType::f32, {3});
  const ReluSides none{.error = error, .of_operations = {}};
  FollowsSides following(backend(), none);
  EXPECT_EQ(status_of([&] { following.run(op::ActivationForward{.kind = compute::Activation::relu, .x = x, .y = y}); }),
            ASSAY_INTERNAL);
  const ReluSides one{.error = error, .of_operations = {{ReluSides::Side::clear}}};
  EXPECT_EQ(status_of([&] { FollowsSides(backend(), one).text(); }), ASSAY_INTERNAL);
}

}  // namespace
}  // namespace assay::conformance
