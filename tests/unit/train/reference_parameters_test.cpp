// Gradients in the arena against those that a reference gives, parameter by parameter.
#include <assay/verification/reference_parameters.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host_tensors.hpp"

namespace assay::train {
namespace {

struct Arena {
  Arena() : set({}), gradients(0) {
    set.add({{"matrix", {2, 3}}});
    set.add({{"vector", {4}}});
    set.add({{"of_another_layer", {5}}});
    values.resize(static_cast<std::size_t>(set.arena_elements()));
    gradients.resize(values.size());
    set.bind(values.data(), nullptr, gradients.data());
  }
  ParameterSet set;
  std::vector<float> values, gradients;
  test::HostTensors backend;
};

TEST(ParametersInPlace, HaveADifferenceOfEachParameterThatIsUsed) {
  Arena arena;
  verification::ParametersInPlace parameters(arena.backend, arena.set, {0, 1}, {false, false, false}, 1);
  parameters.keep_product(0, verification::Matrix(1, 2), verification::Matrix(1, 3));
  parameters.keep(1, {0, 0, 0, 2});
  const auto differences = parameters.differences();
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].elements(), 6u);
  EXPECT_EQ(differences[1].whole(), 1) << "2 is expected, and 0 is there";
  EXPECT_EQ(differences[2].elements(), 0u) << "not used";
}

TEST(ParametersInPlace, FailWhereAReferenceForgetsAParameter) {
  Arena arena;
  verification::ParametersInPlace parameters(arena.backend, arena.set, {0, 1}, {false, false, false}, 1);
  parameters.keep_product(0, verification::Matrix(1, 2), verification::Matrix(1, 3));
  try {
    static_cast<void>(parameters.differences());
    FAIL() << "a gradient that was never given passed";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INTERNAL);
    EXPECT_NE(std::string(e.what()).find("vector"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::train
