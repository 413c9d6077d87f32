// What changes in a process is seen, and what does not is not.
#include "validate/process_state.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace assay::host::validate {
namespace {

TEST(ProcessState, IsTheSameTwice) {
  const ProcessState before = ProcessState::now(), after = ProcessState::now();
  EXPECT_EQ(new_descriptors(before, after), "");
  EXPECT_EQ(changed_handlers(before, after), "");
  EXPECT_EQ(changed_environment(before, after), "");
  EXPECT_EQ(before.threads, after.threads);
  EXPECT_EQ(before.children, after.children);
  EXPECT_EQ(before.folder, after.folder);
}

TEST(ProcessState, ShowsWhatIsOpenHandledAndSet) {
  const ProcessState before = ProcessState::now();
  const int fd = open("/dev/null", O_RDONLY);
  const auto handler = signal(SIGUSR1, SIG_IGN);
  setenv("ASSAY_TEST_OF_STATE", "1", 1);
  const ProcessState after = ProcessState::now();
  close(fd);
  signal(SIGUSR1, handler);
  unsetenv("ASSAY_TEST_OF_STATE");
  EXPECT_NE(new_descriptors(before, after).find("/dev/null"), std::string::npos);
  EXPECT_EQ(changed_handlers(before, after), "User defined signal 1");
  EXPECT_EQ(changed_environment(before, after), "ASSAY_TEST_OF_STATE");
  EXPECT_EQ(changed_environment(after, before), "ASSAY_TEST_OF_STATE") << "one that is gone";
}

}  // namespace
}  // namespace assay::host::validate
