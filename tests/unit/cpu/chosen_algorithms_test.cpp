#include "common/chosen_algorithms.hpp"

#include <assay/algorithms.h>
#include <gtest/gtest.h>
#include <assay/plugin.hpp>

#include <string>
#include <utility>
#include <vector>

namespace assay::compute {
namespace {

std::string last_text;

assay_status guard_call(void (*body)(void* context), void* context) noexcept {
  try {
    body(context);
    return ASSAY_OK;
  } catch (const Error& e) {
    last_text = e.what();
    return e.status();
  }
}

class ChosenAlgorithms : public testing::Test {
 protected:
  ChosenAlgorithms() { forget_algorithms(); }
  ~ChosenAlgorithms() override { forget_algorithms(); }
  static const assay_algorithms& table() {
    return *static_cast<const assay_algorithms*>(algorithms_extension(ASSAY_EXT_ALGORITHMS, guard_call));
  }
  static std::vector<std::pair<std::string, std::string>> all() {
    std::vector<std::pair<std::string, std::string>> list;
    std::uint64_t count = 0;
    EXPECT_EQ(table().count(nullptr, &count), ASSAY_OK);
    for (std::uint64_t i = 0; i < count; ++i) {
      assay_algorithm one{};
      one.struct_size = sizeof one;
      EXPECT_EQ(table().get(nullptr, i, &one), ASSAY_OK);
      list.emplace_back(one.made_for, one.algorithm);
    }
    return list;
  }
};

TEST_F(ChosenAlgorithms, EachKeyOnceInTheOrderOfTheirFirstUse) {
  note_algorithm("matmul b", "tile 16");
  note_algorithm("matmul a", "tile 8");
  note_algorithm("matmul b", "tile 16");
  note_algorithm("matmul b", "tile 32");
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(all(), (std::vector<Pair>{{"matmul b", "tile 16 | tile 32"}, {"matmul a", "tile 8"}}));
}

TEST_F(ChosenAlgorithms, ADeviceThatIsOpenedBeginsAnew) {
  note_algorithm("matmul a", "tile 8");
  forget_algorithms();
  EXPECT_TRUE(all().empty());
}

TEST_F(ChosenAlgorithms, WhatIsNotThereIsRefusedWithText) {
  assay_algorithm one{};
  EXPECT_EQ(table().get(nullptr, 0, &one), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(last_text.find("struct_size"), std::string::npos);
  one.struct_size = sizeof one;
  EXPECT_EQ(table().get(nullptr, 0, &one), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(last_text.find("count()"), std::string::npos);
  EXPECT_EQ(algorithms_extension("assay.algorithms/2", guard_call), nullptr);
}

}  // namespace
}  // namespace assay::compute
