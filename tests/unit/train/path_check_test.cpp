// Two ways to compute one step, held against each other.
#include <gtest/gtest.h>

#include <assay/train/path_check.hpp>
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

std::string compared(const Outcome& timed, const Outcome& reference) {
  return compare_paths("one against another", timed, reference,
                       {.loss = 1e-3, .gradient = 1e-2, .block = 1e-2, .factor = 1e-2}, three_parameters(), "d");
}

TEST(PathCheck, PassesWhatAgrees) {
  const Outcome reference{2, {{1, 1}, {1, 1}, {1, 1}}};
  EXPECT_NE(compared({2.0001, {{1, 1}, {1.001F, 1}, {1, 1}}}, reference).find("(b; tolerance 0.01)"),
            std::string::npos);
}

TEST(PathCheck, NamesTheWorstParameter) {
  const Outcome reference{2, {{1, 1}, {1, 1}, {1, 1}}};
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
  const Outcome reference{2, {{1}, {1}, {1}}};
  EXPECT_THROW(compared({2, {{1.9F}, {NAN}, {1.005F}}}, reference), Error);
  EXPECT_THROW(compared({2, {{NAN}, {1}, {1}}}, reference), Error);
  EXPECT_THROW(compared({2, {{INFINITY}, {1}, {1}}}, reference), Error);
  EXPECT_THROW(compared({2, {{1}, {1}, {1}}}, {2, {{1}, {NAN}, {1}}}), Error);
  EXPECT_THROW(compared({NAN, {{1}, {1}, {1}}}, reference), Error);
}

TEST(PathCheck, AnOutcomeWithFewerTensorsIsNoAgreement) {
  EXPECT_THROW(compared({2, {{1}, {1}}}, {2, {{1}, {1}, {1}}}), Error);
}

}  // namespace
}  // namespace assay::train
