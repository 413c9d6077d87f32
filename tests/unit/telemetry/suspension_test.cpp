#include "telemetry/suspension.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::host::telemetry {
namespace {

TEST(Suspension, AProcessThatWasStoppedKnowsIt) {
  SuspensionProbe probe;
  probe.begin();
  // Stopped by a child, which waits until it is, and continues it.
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    kill(self, SIGSTOP);
    usleep(20'000);
    kill(self, SIGCONT);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  const Suspension found = probe.end();
  EXPECT_GE(found.continued, 1);
  const record::Validity good{record::ValidityVerdict::valid, "nobody"};
  const record::Validity verdict = with_suspension(good, found);
  EXPECT_EQ(verdict.verdict, record::ValidityVerdict::contended);
  EXPECT_NE(verdict.text.find("received SIGCONT"), std::string::npos);
}

// As the program of a `command` that somebody suspends.
TEST(Suspension, OfAChildThatWasStopped) {
  SuspensionProbe probe;
  probe.begin();
  const pid_t child = fork();
  if (child == 0) {
    kill(getpid(), SIGSTOP);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, WUNTRACED) < 0) {
  }
  kill(child, SIGCONT);
  while (waitpid(child, &status, 0) < 0) {
  }
  const Suspension found = probe.end();
  EXPECT_EQ(found.children_continued, 1);
  EXPECT_EQ(found.continued, 0);
  const record::Validity verdict = with_suspension({record::ValidityVerdict::valid, "nobody"}, found);
  EXPECT_EQ(verdict.verdict, record::ValidityVerdict::contended);
  EXPECT_EQ(verdict.text,
            "a program that it runs was continued after a stop 1 time while it was measured; measure again");
}

TEST(Suspension, WithoutAStopNothingChanges) {
  SuspensionProbe probe;
  probe.begin();
  const record::Validity verdict = with_suspension({record::ValidityVerdict::valid, "nobody"}, probe.end());
  EXPECT_EQ(verdict.verdict, record::ValidityVerdict::valid);
  EXPECT_EQ(verdict.text, "nobody");
  const record::Validity asleep = with_suspension(verdict, {.continued = 0, .asleep_s = 3600});
  EXPECT_EQ(asleep.text, "the machine was suspended for 3600.0 s while it was measured; measure again");
}

}  // namespace
}  // namespace assay::host::telemetry
