// Two ways to compute one step, held against each other.
#include <gtest/gtest.h>

#include <assay/verification/path_check.hpp>
#include <cmath>

namespace assay::train {
namespace {

ParameterSet three_parameters() {
  ParameterSet set({});
  set.add({{"a", {64}}});
  set.add({{"b", {64}}});
  set.add({{"c", {64}}});
  return set;
}

struct Left {  // by a way to compute a step
  double loss = 0;
  std::vector<std::vector<float>> gradients;
};

std::string compared(const Left& timed, const Left& reference, const verification::PathTolerance& tolerance,
                     const ParameterSet& set) {
  std::vector<verification::BlockDifference> differences;
  for (std::size_t i = 0; i < timed.gradients.size(); ++i)
    differences.emplace_back(timed.gradients[i], reference.gradients[i]);
  return verification::compare_paths("one against another", timed.loss, reference.loss, differences, tolerance, set,
                                     "d");
}

std::string compared(const Left& timed, const Left& reference) {
  return compared(timed, reference, {.loss = 1e-3, .gradient = 1e-2, .block = 1e-2, .factor = 1e-2},
                  three_parameters());
}

TEST(PathCheck, PassesWhatAgrees) {
  const Left reference{2, {{1, 1}, {1, 1}, {1, 1}}};
  EXPECT_NE(compared({2.0001, {{1, 1}, {1.001F, 1}, {1, 1}}}, reference).find("(b; tolerance 0.01)"),
            std::string::npos);
}

TEST(PathCheck, NamesTheWorstParameter) {
  const Left reference{2, {{1, 1}, {1, 1}, {1, 1}}};
  try {
    compared({2, {{1, 1}, {1.5F, 1}, {1, 1}}}, reference);
    FAIL() << "a wrong gradient passed";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT);
    EXPECT_NE(std::string(e.what()).find("(b; "), std::string::npos) << e.what();
  }
}

// A wrong parameter, then one that is not a number, then a right one: the last one used to be all that was left.
TEST(PathCheck, ParametersAfterNotANumberDoNotMakeItRight) {
  const Left reference{2, {{1}, {1}, {1}}};
  EXPECT_THROW(compared({2, {{1.9F}, {NAN}, {1.005F}}}, reference), Error);
  EXPECT_THROW(compared({2, {{NAN}, {1}, {1}}}, reference), Error);
  EXPECT_THROW(compared({2, {{INFINITY}, {1}, {1}}}, reference), Error);
  EXPECT_THROW(compared({2, {{1}, {1}, {1}}}, {2, {{1}, {NAN}, {1}}}), Error);
  EXPECT_THROW(compared({NAN, {{1}, {1}, {1}}}, reference), Error);
}

// What was found on a CPU, and at most five times as much.
TEST(PathTolerance, OfFp32IsNotFarFromWhatIsFound) {
  for (const std::int64_t layers : {1, 2, 12, 48}) {
    const double depth = std::sqrt(static_cast<double>(layers));
    const verification::PathTolerance tolerance = verification::path_tolerance({}, layers, 32);
    EXPECT_LE(tolerance.loss, 5 * 9e-8);
    EXPECT_LE(tolerance.gradient, 5 * 1e-6 * depth);
    EXPECT_LE(tolerance.factor, 5 * 2.8e-7 * depth);
    EXPECT_LE(tolerance.few, 5 * 1e-6 * depth);
  }
}

// Of 2 tokens 6.6e-7 was found in fp32, of 4 tokens 1.68e-4 in fp16.
TEST(PathTolerance, TheLossOfFewTokensIsOffByMore) {
  const workload::PrecisionPolicy fp16{.activation = compute::DType::f16};
  for (const auto& tolerance : {verification::path_tolerance, verification::relu_path_tolerance}) {
    EXPECT_GE(tolerance({}, 2, 2).loss, 2 * 6.6e-7);
    EXPECT_LE(tolerance({}, 2, 2).loss, 5 * 6.6e-7);
    EXPECT_GE(tolerance(fp16, 2, 4).loss, 2 * 1.68e-4);
    EXPECT_LE(tolerance(fp16, 2, 4).loss, 5 * 1.68e-4);
    EXPECT_NEAR(tolerance(fp16, 2, 4096).loss, 1e-4, 1e-9);
  }
}

// A large tensor that is too large by two millionths: less than 0.6 of what its norm may differ by.
TEST(PathTolerance, OfFp32FindsAFactor) {
  ParameterSet set({});
  set.add({{"a", {100'000}}});
  Left reference{2, {std::vector<float>(100'000)}};
  for (std::size_t i = 0; i < reference.gradients[0].size(); ++i)
    reference.gradients[0][i] = static_cast<float>(std::sin(static_cast<double>(i)));
  Left timed = reference;
  for (float& x : timed.gradients[0]) x = static_cast<float>(static_cast<double>(x) * (1 + 2e-6));
  EXPECT_THROW(compared(timed, reference, verification::path_tolerance({}, 1, 32), set), Error);
}

// Errors that were found with right results keep a margin, and the tolerance is within a few times of them.
TEST(PathTolerance, LeavesWhatIsFoundAMargin) {
  const workload::PrecisionPolicy bf16{.gradient = compute::DType::bf16, .activation = compute::DType::bf16},
      fp16{.activation = compute::DType::f16}, tf32{.product_math = compute::ProductMath::tf32};
  for (const std::int64_t layers : {1, 12, 48}) {
    const double depth = std::sqrt(static_cast<double>(layers));
    for (const auto& [policy, found] :
         {std::pair(workload::PrecisionPolicy{}, 1.6e-6), {bf16, 1.3e-2}, {fp16, 1.7e-3}, {tf32, 4.5e-4}}) {
      const double gradient = verification::path_tolerance(policy, layers, 32).gradient;
      EXPECT_GE(gradient, 2 * found * depth);
      EXPECT_LE(gradient, 5 * found * depth);
    }
  }
}

// One state of 1020 tokens that changes its side moves 256 neighbours by 0.0144, as a CPU with AMX had it.
TEST(PathTolerance, OfReluStatesThatMayDifferHoldsForOneOfManyTokens) {
  const verification::PathTolerance tolerance = verification::relu_path_tolerance({}, 8, 1020);
  EXPECT_GE(tolerance.block, 2 * 0.0144);
  EXPECT_GE(tolerance.gradient, 2 * 9e-4);
  EXPECT_LT(verification::path_tolerance({}, 8, 1020).block, 1e-4);
}

}  // namespace
}  // namespace assay::train
