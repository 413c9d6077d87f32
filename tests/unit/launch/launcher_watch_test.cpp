#include "launch/launcher_watch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>

namespace assay::host::launch {
namespace {

pid_t waiting_child() {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  return child;
}

void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(LauncherWatch, TheFirstThatIsGoneEndsTheRanks) {
  const pid_t shell = waiting_child(), launcher = waiting_child();
  std::promise<pid_t> gone;
  {
    const LauncherWatch watch({shell, launcher}, [&](pid_t process) { gone.set_value(process); });
    end(launcher);
    auto answer = gone.get_future();
    ASSERT_EQ(answer.wait_for(std::chrono::minutes(1)), std::future_status::ready);
    EXPECT_EQ(answer.get(), launcher);
  }
  end(shell);
}

TEST(LauncherWatch, NothingIsCalledOfThoseThatStay) {
  const pid_t launcher = waiting_child();
  bool is_called = false;
  {
    const LauncherWatch watch({launcher}, [&](pid_t) { is_called = true; });
  }
  EXPECT_FALSE(is_called);
  end(launcher);
}

TEST(LauncherWatch, TheParentIsAmongThem) {
  const std::vector<pid_t> processes = launcher_processes();
  if (getppid() > 1) {
    ASSERT_FALSE(processes.empty());
    EXPECT_EQ(processes[0], getppid());
  }
}

}  // namespace
}  // namespace assay::host::launch
