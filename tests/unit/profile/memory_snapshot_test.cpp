// What the snapshot says is walked in Python (tests/e2e/profile); here are the rules for what enters it.
#include "profile/memory_snapshot.hpp"

#include <gtest/gtest.h>

namespace assay::host::profile {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST(MemoryHistory, PlansMustLieInAnArenaThatIsHeld) {
  MemoryHistory history;
  history.allocated(0x1000, 1024, 3, "arena");
  EXPECT_TRUE(history.planned(0x1000, {"a", 0, 1024, 0, 1}));
  EXPECT_FALSE(history.planned(0x1000, {"b", 512, 513, 0, 1}));
  EXPECT_FALSE(history.planned(0x1000, {"c", 2048, 0, 0, 1}));
  EXPECT_FALSE(history.planned(0x1000, {"d", 0, 8, 2, 1}));
  EXPECT_FALSE(history.planned(0x2000, {"e", 0, 8, 0, 1}));
  history.released(0x1000);
  EXPECT_FALSE(history.planned(0x1000, {"f", 0, 8, 0, 1}));
}

TEST(MemoryHistory, TensorsAppearWithTheirLivesAndOneStepMore) {
  MemoryHistory history;
  history.allocated(0x1000, 1024, 3, "arena");
  history.planned(0x1000, {"kept", 0, 256, 0, 5});
  history.planned(0x1000, {"early", 256, 256, 0, 1});
  history.planned(0x1000, {"late", 256, 768, 3, 5});
  const std::string snapshot = history.snapshot(0);
  // kept: taken once, as it lives through the step; and a block. early: taken and given back (two events) twice.
  EXPECT_EQ(count(snapshot, "kept"), 2u);
  EXPECT_EQ(count(snapshot, "early"), 6u);
  // late: one whole life (three events), taken again at the fullest moment, and a block.
  EXPECT_EQ(count(snapshot, "late"), 5u);
}

TEST(MemoryHistory, APlanThatOverlapsItselfIsNotShown) {
  MemoryHistory history;
  history.allocated(0x1000, 1024, 3, "arena");
  history.planned(0x1000, {"first", 0, 512, 0, 5});
  history.planned(0x1000, {"second", 256, 512, 4, 5});
  const std::string snapshot = history.snapshot(0);
  EXPECT_EQ(count(snapshot, "first"), 0u);
  EXPECT_GT(count(snapshot, "active_allocated"), 0u);
}

TEST(MemoryHistory, ARefusedAllocationIsAnEventWithTheFreeMemory) {
  MemoryHistory history;
  history.refused(1 << 20, 4096, 0, "parameters \xff");
  const std::string snapshot = history.snapshot(1);
  EXPECT_EQ(count(snapshot, "oom"), 1u);
  EXPECT_EQ(count(snapshot, "device_free"), 1u);
  EXPECT_EQ(count(snapshot, "parameters \xef\xbf\xbd"), 1u) << "text that is no UTF-8 would end Python's reading";
}

}  // namespace
}  // namespace assay::host::profile
