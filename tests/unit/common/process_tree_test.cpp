#include "common/process_tree.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace assay::host {
namespace {

[[noreturn]] void sleep_on() {
  for (;;) pause();
}

bool contains(const std::vector<pid_t>& list, pid_t pid) {
  return std::find(list.begin(), list.end(), pid) != list.end();
}

// A child with its own child, which hold this much and report when they do.
struct Family {
  pid_t child = -1, grandchild = -1;
  explicit Family(std::size_t bytes) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    child = fork();
    if (child == 0) {
      const pid_t own = fork();
      if (own == 0) {
        volatile char* const memory = static_cast<volatile char*>(std::malloc(bytes));
        for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
        const pid_t self = getpid();
        if (write(ends[1], &self, sizeof self) != sizeof self) _exit(1);
        sleep_on();
      }
      sleep_on();
    }
    if (read(ends[0], &grandchild, sizeof grandchild) != sizeof grandchild) std::abort();
    close(ends[0]);
    close(ends[1]);
  }
  ~Family() {
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    waitpid(grandchild, nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
};

TEST(ProcessTree, HasChildrenOfChildren) {
  const Family family(64 << 20);
  EXPECT_TRUE(contains(children_of(getpid()), family.child));
  EXPECT_FALSE(contains(children_of(getpid()), family.grandchild));
  const std::vector<pid_t> descendants = descendants_of(getpid(), getppid(), "");
  EXPECT_TRUE(contains(descendants, family.child));
  EXPECT_TRUE(contains(descendants, family.grandchild));
  EXPECT_FALSE(contains(descendants, getpid()));
  EXPECT_GT(resident_bytes_of(family.grandchild), 64u << 20);
  const std::uint64_t shared_once = proportional_bytes_of(family.grandchild);
  EXPECT_TRUE(shared_once == 0 || shared_once > 64u << 20) << shared_once;
}

// Its parent has ended: it belongs to the nearest subreaper, and is known by its environment alone.
TEST(ProcessTree, OrphansAreFoundByTheirEnvironment) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const Family family(1 << 20);
  kill(family.child, SIGKILL);
  waitpid(family.child, nullptr, 0);
  const char* path = getenv("PATH");
  ASSERT_NE(path, nullptr);
  const std::string entry = std::string("PATH=") + path;
  EXPECT_TRUE(has_variable(family.grandchild, entry));
  EXPECT_FALSE(has_variable(family.grandchild, "NO_SUCH_VARIABLE=1"));
  EXPECT_FALSE(contains(descendants_of(family.child, getpid(), ""), family.grandchild));
  EXPECT_FALSE(contains(descendants_of(family.child, getpid(), "NO_SUCH_VARIABLE=1"), family.grandchild));
  EXPECT_TRUE(contains(descendants_of(family.child, getpid(), entry), family.grandchild));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ProcessTree, OfAProcessThatIsNotThereNothingIsSaid) {
  constexpr pid_t nobody = 4'000'000;
  EXPECT_TRUE(children_of(nobody).empty());
  EXPECT_TRUE(descendants_of(nobody, nobody, "A=b").empty());
  EXPECT_EQ(resident_bytes_of(nobody), 0u);
  EXPECT_EQ(proportional_bytes_of(nobody), 0u);
  EXPECT_EQ(cpu_seconds_of(nobody), 0);
}

}  // namespace
}  // namespace assay::host
