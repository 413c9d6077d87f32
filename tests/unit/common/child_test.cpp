// A function in a child that crashes, hangs, exits, or leaves processes behind.
#include "common/child.hpp"

#include "common/command.hpp"
#include "common/process_tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace assay::host {
namespace {

TEST(Child, TellsAndEnds) {
  const ChildEnd end = run_in_child([](const Send& send) { send("one "), send("two"); });
  EXPECT_EQ(end.text, "one two");
  EXPECT_TRUE(end.is_clean());
}

TEST(Child, HasToldWhatCameBeforeItsEnd) {
  const ChildEnd crashed = run_in_child([](const Send& send) {
    send("before");
    std::abort();
  });
  EXPECT_EQ(crashed.text, "before");
  EXPECT_FALSE(crashed.is_complete || crashed.is_overdue || crashed.is_clean());
  EXPECT_EQ(crashed.how(), "signal 6 (Aborted)");
  EXPECT_EQ(run_in_child([](const Send&) { std::exit(0); }).is_complete, false);
  EXPECT_EQ(run_in_child([](const Send&) { _exit(3); }).how(), "exit code 3");
}

TEST(Child, IsEndedWhenItIsOverdue) {
  const ChildEnd end = run_in_child(
      [](const Send& send) {
        send("here");
        for (;;) pause();
      },
      {.deadline = std::chrono::milliseconds(200)});
  EXPECT_EQ(end.text, "here");
  EXPECT_TRUE(end.is_overdue);
}

TEST(Child, EndsAsAProgramDoesWhereItIsAsked) {
  const auto adds_handler = [](const Send&) { std::atexit([] { _exit(7); }); };
  EXPECT_TRUE(run_in_child(adds_handler).is_clean());
  const ChildEnd end = run_in_child(adds_handler, {.runs_exit_handlers = true});
  EXPECT_TRUE(end.is_complete);
  EXPECT_FALSE(end.is_clean());
  EXPECT_EQ(end.how(), "exit code 7");
}

// The one that is left holds the pipe open, and has left the child's process group.
TEST(Child, TakesWhatItHasStartedWithIt) {
  const ChildEnd end = run_in_child(
      [](const Send& send) {
        if (fork() == 0) {
          setsid();
          for (;;) pause();
        }
        send("started");
        for (;;) pause();
      },
      {.deadline = std::chrono::milliseconds(300)});
  EXPECT_EQ(end.text, "started");
  EXPECT_TRUE(children_of(getpid()).empty());
}

// A daemon, as a constructor may start one: in its own session, its parents gone before it is looked for.
TEST(Child, TakesADaemonWithItAlsoWhenItEndsFirst) {
  for (const bool crashes : {false, true}) {
    const ChildEnd end = run_in_child([&](const Send& send) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        const pid_t own = getpid();
        (void)!write(ends[1], &own, sizeof own);
        for (;;) pause();
      }
      pid_t daemon = 0;
      ASSERT_EQ(read(ends[0], &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
      send(std::to_string(daemon));
      if (crashes) std::abort();
    });
    EXPECT_EQ(end.is_clean(), !crashes) << end.how();
    const pid_t daemon = std::atoi(end.text.c_str());
    ASSERT_GT(daemon, 1);
    EXPECT_EQ(kill(daemon, 0), -1) << "it lives on";
    EXPECT_TRUE(children_of(getpid()).empty());
  }
}

// Whoever has asked is ended itself, as by a terminal that closes: nothing of the child is left then either.
TEST(Child, IsEndedWithWhatItHasStartedWhereItsParentIs) {
  auto* const daemon_pid = static_cast<volatile pid_t*>(
      mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(daemon_pid, MAP_FAILED);
  const pid_t asking = fork();
  ASSERT_GE(asking, 0);
  if (asking == 0) {
    run_in_child([&](const Send&) {
      if (fork() == 0) {
        setsid();
        if (fork() == 0) {
          *daemon_pid = getpid();
          for (;;) pause();
        }
        _exit(0);
      }
      for (;;) pause();
    });
    _exit(0);
  }
  for (int i = 0; i < 5000 && *daemon_pid == 0; ++i) usleep(1000);
  ASSERT_GT(*daemon_pid, 0);
  kill(asking, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(asking, &status, 0), asking);
  bool is_gone = false;
  for (int i = 0; i < 5000 && !is_gone; ++i) usleep(1000), is_gone = kill(*daemon_pid, 0) != 0;
  EXPECT_TRUE(is_gone);
  if (!is_gone) kill(*daemon_pid, SIGKILL);
  munmap(const_cast<pid_t*>(daemon_pid), sizeof(pid_t));
}

TEST(Child, PrintsWhereItIsToldTo) {
  const int memory = memfd_create("output", MFD_CLOEXEC);
  const ChildEnd end = run_in_child(
      [](const Send&) {
        std::puts("printed");
        throw std::runtime_error("thrown");
      },
      {.runs_exit_handlers = true, .output = memory});
  EXPECT_EQ(end.how(), "exit code 1");
  char text[100] = {};
  EXPECT_GT(pread(memory, text, sizeof text - 1, 0), 0);
  close(memory);
  EXPECT_NE(std::string(text).find("thrown"), std::string::npos) << text;
}

// A daemon that a program leaves behind has its pipes.
TEST(RunCommand, WhatAProgramLeavesRunningIsNotWaitedFor) {
  const CommandAnswer answer = run_command({"sh", "-c", "sleep 60 & echo said; echo $! >&2"}, std::chrono::seconds(30));
  EXPECT_TRUE(answer.is_good()) << answer.complaint();
  EXPECT_EQ(answer.out, "said\n");
  ::kill(std::stoi(answer.err), SIGKILL);
}

TEST(RunCommand, EndlessOutputEndsTheProgram) {
  const CommandAnswer answer = run_command({"sh", "-c", "exec yes"}, std::chrono::seconds(60));
  EXPECT_FALSE(answer.is_good());
  EXPECT_EQ(answer.complaint(), "it said more than 64 MiB");
  EXPECT_LT(answer.out.size(), most_answer_bytes + (1 << 20));
}

TEST(RunCommand, AProgramThatClosesItsPipesIsHeldToItsTimeAllTheSame) {
  const CommandAnswer answer = run_command({"sh", "-c", "exec sleep 60 >&- 2>&-"}, std::chrono::milliseconds(200));
  EXPECT_TRUE(answer.timed_out);
}

}  // namespace
}  // namespace assay::host
