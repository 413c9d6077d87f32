#include "launch/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "launch/launch_error.hpp"

namespace assay::host::launch {
namespace {

bool readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

TEST(InterruptHandler, CountsSignalsAndWakesAPoll) {
  const InterruptHandler interrupts;
  EXPECT_EQ(interrupts.count()->load(), 0);
  EXPECT_EQ(interrupts.last_signal(), 0);
  EXPECT_FALSE(readable(interrupts.wake_fd()));
  raise(SIGINT);
  EXPECT_EQ(interrupts.count()->load(), 1);
  EXPECT_EQ(interrupts.last_signal(), SIGINT);
  EXPECT_TRUE(readable(interrupts.wake_fd()));
  raise(SIGTERM);
  EXPECT_EQ(interrupts.count()->load(), 2);
  EXPECT_EQ(interrupts.last_signal(), SIGTERM);
}

TEST(InterruptHandler, TheThirdSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptHandler interrupts;
        for (int i = 0; i < 3; ++i) raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

TEST(InterruptHandler, RestoresWhatWasThereBefore) {
  { const InterruptHandler interrupts; }
  EXPECT_EXIT(raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST(InterruptHandler, LeavesAnIgnoredHangupIgnored) {
  signal(SIGHUP, SIG_IGN);
  {
    const InterruptHandler interrupts;
    raise(SIGHUP);
    EXPECT_EQ(interrupts.count()->load(), 0);
  }
  signal(SIGHUP, SIG_DFL);
}

TEST(InterruptHandler, IsOneAtATime) {
  const InterruptHandler first;
  EXPECT_THROW(InterruptHandler second, LaunchError);
}

}  // namespace
}  // namespace assay::host::launch
