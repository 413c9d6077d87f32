#include "worker/plugin_messages.hpp"

#include <gtest/gtest.h>

namespace assay::host::worker {
namespace {

TEST(PluginMessages, TheTextOfACallIsTakenOnce) {
  PluginMessages messages;
  messages.set("heads 3; expected 4");
  messages.set("heads 5; expected 4");
  EXPECT_EQ(messages.take(), "heads 5; expected 4") << "the last one counts";
  EXPECT_EQ(messages.take(), "");
}

TEST(PluginMessages, ALongTextIsCutBetweenCharactersAndWarnedOf) {
  PluginMessages messages;
  messages.set("a" + std::string(1999, 'b') + std::string(1000, 'c') + std::string(999, 'd') + "\u00e9");
  EXPECT_EQ(messages.take().substr(3998), "d...") << "half of the last character is left out";
  ASSERT_EQ(messages.warnings().size(), 1u);
  EXPECT_EQ(messages.warnings()[0], "a message of the workload has 4001 bytes; the first 4000 are kept");
}

TEST(PluginMessages, OnlyWarningsOfTheLogAreKeptEachOnceAndTheFirstOnes) {
  PluginMessages messages;
  testing::internal::CaptureStderr();
  messages.log(1, "all is well");
  for (int i = 0; i < 20; ++i) messages.log(2, "slow " + std::to_string(i / 2));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(log.starts_with("[plugin info] all is well\n[plugin warning] slow 0\n")) << log;
  EXPECT_TRUE(log.ends_with("slow 9\n")) << "the log has all";
  ASSERT_EQ(messages.warnings().size(), 8u);
  EXPECT_EQ(messages.warnings().front(), "slow 0");
  EXPECT_EQ(messages.warnings().back(), "slow 7");
}

}  // namespace
}  // namespace assay::host::worker
