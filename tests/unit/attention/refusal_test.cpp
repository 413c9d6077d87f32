// What a user reads when the tiled attention does not serve a shape.
#include <gtest/gtest.h>

#include <string>

#include "algorithm.hpp"

namespace attention {
namespace {

TEST(AttentionRefusal, NamesTheImplementationThatServes) {
  try {
    say_what_serves([] { throw assay::Error(ASSAY_UNSUPPORTED, "head dimension 1024 given; at most 256"); });
    FAIL() << "nothing was thrown";
  } catch (const assay::Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_STREQ(e.what(), "head dimension 1024 given; at most 256; impl = \"naive\" serves every shape");
  }
}

TEST(AttentionRefusal, LeavesOtherErrorsAsTheyAre) {
  try {
    say_what_serves([] { throw assay::Error(ASSAY_OUT_OF_MEMORY, "too large"); });
    FAIL() << "nothing was thrown";
  } catch (const assay::Error& e) {
    EXPECT_EQ(e.status(), ASSAY_OUT_OF_MEMORY);
    EXPECT_STREQ(e.what(), "too large");
  }
  bool called = false;
  say_what_serves([&] { called = true; });
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace attention
