#include "launch/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include <nlohmann/json.hpp>
#include <thread>

#include "launch/board.hpp"
#include "launch/event_reader.hpp"
#include "temporary_folder.hpp"

namespace assay::host::launch {
namespace {

using namespace std::chrono_literals;
constexpr int patience_ms = 60'000;  // how long a test waits for what must come

int open_pid_fd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool wait_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return poll(&watched, 1, patience_ms) == 1;
}

class ProcessTest : public testing::Test {
 protected:
  SpawnRequest request(std::vector<std::string> arguments) {
    return {TEST_WORKER, std::move(arguments), {}, log_, "{}", board_.fd()};
  }
  Exit run_to_end(const SpawnRequest& request) {
    Process process = spawn(request);
    EventReader reader({});
    while (wait_readable(process.event_fd()) && reader.read_from(process.event_fd()) == EventReader::State::open) {
    }
    EXPECT_TRUE(wait_readable(process.end_fd()));
    events_ = std::move(reader).finish();
    const std::optional<Exit> exit = process.kill_and_reap(10s);
    EXPECT_TRUE(exit.has_value());
    return exit.value_or(Exit{});
  }

  TemporaryFolder folder_;
  std::filesystem::path log_ = folder_ / "log";
  ProgressBoard board_ = ProgressBoard::create();
  WorkerEvents events_;
};

TEST_F(ProcessTest, ReportsTheExitCode) {
  const Exit exit = run_to_end(request({"exit", "3"}));
  EXPECT_FALSE(exit.by_signal);
  EXPECT_EQ(exit.number, 3);
  EXPECT_GT(exit.peak_rss_bytes, 0u);
}

TEST_F(ProcessTest, ReportsTheSignal) {
  const Exit exit = run_to_end(request({"signal", std::to_string(SIGSEGV)}));
  EXPECT_TRUE(exit.by_signal);
  EXPECT_EQ(exit.number, SIGSEGV);
}

TEST_F(ProcessTest, GivesTheWorkerItsThreeDescriptorsAndNothingElse) {
  // Inherited in the ordinary course of things, unless spawn() takes care.
  const Fd low(open("/dev/null", O_RDONLY));
  const Fd high(fcntl(low.get(), F_DUPFD, 700));
  ASSERT_TRUE(low && high);
  run_to_end(request({"surroundings"}));
  ASSERT_TRUE(events_.result.has_value()) << text_of(log_);
  std::vector<int> open = nlohmann::json::parse(*events_.result)["open"];
  std::sort(open.begin(), open.end());
  EXPECT_EQ(open, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST_F(ProcessTest, WorksWhenTheHostsOwnLowDescriptorsAreClosed) {
  // The pipe, the case text and the board then get the very numbers that they have in the worker, in another order.
  std::vector<Fd> kept;
  for (const int fd : {0, 3, 4, 5, 6}) {
    kept.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 50));
    close(fd);
  }
  const ProgressBoard low_board = ProgressBoard::create();
  SpawnRequest low = request({"surroundings"});
  low.board_fd = low_board.fd();
  const int low_number = low_board.fd();
  run_to_end(low);
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) dup2(kept[i].get(), std::array{0, 3, 4, 5, 6}[i]);
  EXPECT_EQ(low_number, 0);
  ASSERT_TRUE(events_.result.has_value()) << text_of(log_);
  EXPECT_EQ(nlohmann::json::parse(*events_.result)["spec"], "{}");
}

TEST_F(ProcessTest, SetsTheSurroundings) {
  setenv("LAUNCH_TEST_UNSET", "x", 1);
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  SpawnRequest with = request({"surroundings"});
  with.environment = {{"LAUNCH_TEST_SET", "a=b c"}, {"LAUNCH_TEST_UNSET", std::nullopt}};
  with.spec = std::string(3 << 20, 's');
  run_to_end(with);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  signal(SIGPIPE, SIG_DFL);
  unsetenv("LAUNCH_TEST_UNSET");

  ASSERT_TRUE(events_.result.has_value()) << text_of(log_);
  const auto found = nlohmann::json::parse(*events_.result);
  EXPECT_EQ(found["stdin"], "/dev/null");
  EXPECT_EQ(found["group_is_own"], true);
  EXPECT_EQ(found["core_bytes"], 0);
  EXPECT_EQ(found["oom_score_adj"], 800);
  EXPECT_EQ(found["sigpipe_is_default"], true);
  EXPECT_EQ(found["sigusr1_is_blocked"], false);
  EXPECT_EQ(found["set"], "a=b c");
  EXPECT_EQ(found["unset"], true);
  EXPECT_EQ(found["spec"].get<std::string>().size(), 3u << 20);
}

TEST_F(ProcessTest, AppendsToTheLog) {
  std::ofstream(log_) << "before\n";
  run_to_end(request({"no such mode"}));
  EXPECT_EQ(text_of(log_), "before\nunknown mode 'no such mode'\n");
}

TEST_F(ProcessTest, SaysWhyAnExecutableCannotBeRun) {
  SpawnRequest missing = request({});
  missing.executable = folder_ / "no-such-program";
  try {
    spawn(missing);
    FAIL() << "it started";
  } catch (const LaunchError& e) {
    EXPECT_NE(std::string(e.what()).find("no-such-program"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("No such file or directory"), std::string::npos) << e.what();
  }
}

TEST_F(ProcessTest, SaysWhichLogCannotBeOpened) {
  SpawnRequest unwritable = request({"ok"});
  unwritable.log_file = folder_ / "no-such-folder/log";
  try {
    spawn(unwritable);
    FAIL() << "it started";
  } catch (const LaunchError& e) {
    EXPECT_NE(std::string(e.what()).find("no-such-folder/log"), std::string::npos) << e.what();
  }
}

std::vector<int> usable_processors() {
  cpu_set_t usable;
  EXPECT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  std::vector<int> found;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &usable)) found.push_back(processor);
  return found;
}

TEST_F(ProcessTest, BindsTheWorkerToItsProcessors) {
  SpawnRequest bound = request({"surroundings"});
  bound.processors = {usable_processors().back()};
  run_to_end(bound);
  ASSERT_TRUE(events_.result.has_value()) << text_of(log_);
  EXPECT_EQ(nlohmann::json::parse(*events_.result)["processors"].get<std::vector<int>>(), bound.processors);

  run_to_end(request({"surroundings"}));
  ASSERT_TRUE(events_.result.has_value()) << text_of(log_);
  EXPECT_EQ(nlohmann::json::parse(*events_.result)["processors"].get<std::vector<int>>(), usable_processors());
}

TEST_F(ProcessTest, SaysThatItCannotBeBound) {
  const int usable = usable_processors().front();
  // The kernel would take the second request and leave out the processor that does not exist.
  for (const std::vector<int>& processors : {std::vector{8000}, std::vector{usable, 8000}}) {
    SpawnRequest unbound = request({"ok"});
    unbound.processors = processors;
    try {
      spawn(unbound);
      FAIL() << "it started";
    } catch (const LaunchError& e) {
      EXPECT_NE(std::string(e.what()).find("could not be bound to its processors"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("8000"), std::string::npos) << e.what();
    }
  }
  for (const int processor : {-1, 1 << 20}) {
    SpawnRequest impossible = request({"ok"});
    impossible.processors = {processor};
    EXPECT_THROW(spawn(impossible), LaunchError) << processor;
  }
}

TEST_F(ProcessTest, SeesThatAnEndHasBegun) {
  const Process process = spawn(request({"play", "note:up", "wait:" + (folder_ / "go").string(), "vanish", "hang"}));
  ASSERT_TRUE(wait_readable(process.event_fd()));
  EXPECT_FALSE(process.is_exiting());
  std::ofstream(folder_ / "go") << "";
  for (int waited_ms = 0; !process.is_exiting() && waited_ms < patience_ms; ++waited_ms)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(process.is_exiting());
  EXPECT_FALSE(process.has_ended());
}

TEST_F(ProcessTest, ItsDestructorKills) {
  Fd watched;
  {
    const Process process = spawn(request({"hang_deaf"}));
    watched = Fd(open_pid_fd(process.pid()));
    ASSERT_TRUE(watched);
    EXPECT_FALSE(process.has_ended());
  }
  EXPECT_TRUE(wait_readable(watched.get()));
}

TEST_F(ProcessTest, KeepsExitCodesWhenTheHostWasStartedWithSigchldIgnored) {
  signal(SIGCHLD, SIG_IGN);
  const Exit exit = run_to_end(request({"exit", "3"}));
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(exit.number, 3);
}

TEST_F(ProcessTest, AWorkerDiesWithItsHost) {
  const std::filesystem::path host_log = folder_ / "host-log";
  SpawnRequest host{TEST_HOST, {TEST_WORKER, log_.string(), "hang_deaf"}, {}, host_log, "{}", board_.fd()};
  const Process process = spawn(host);
  int worker_pid = 0;
  for (int waited_ms = 0; worker_pid == 0 && waited_ms < patience_ms; ++waited_ms) {
    if (const std::string text = text_of(host_log); text.ends_with('\n')) worker_pid = std::stoi(text);
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_GT(worker_pid, 0);
  const Fd worker(open_pid_fd(worker_pid));
  ASSERT_TRUE(worker);
  kill(process.pid(), SIGKILL);
  EXPECT_TRUE(wait_readable(worker.get())) << "the worker outlived its host";
}

// Whatever stands between: the worker itself, or a program that started it, as a profiler does.
TEST_F(ProcessTest, WhatAWorkerHasStartedDiesWithItsHost) {
  const std::string strays = folder_ / "strays";
  for (const std::vector<std::string>& worker :
       {std::vector<std::string>{TEST_WORKER, log_.string(), "play", "deaf", "list_strays:" + strays, "hang"},
        std::vector<std::string>{"/bin/sh", log_.string(), "-c",
                                 "(exec 3>&- 4>&- 5>&-; \"$0\" play deaf \"list_strays:$1\" hang); exit $?",
                                 TEST_WORKER, strays}}) {
    std::filesystem::remove(strays);
    SpawnRequest host{TEST_HOST, worker, {}, folder_ / "host-log", "{}", board_.fd()};
    const Process process = spawn(host);
    std::string listed;
    for (int waited_ms = 0; !listed.ends_with("\n") && waited_ms < patience_ms; ++waited_ms) {
      listed = text_of(strays);
      std::this_thread::sleep_for(1ms);
    }
    std::vector<Fd> running;
    std::istringstream numbers(listed);
    for (pid_t pid = 0; numbers >> pid;) running.emplace_back(open_pid_fd(pid));
    ASSERT_EQ(running.size(), 3u) << listed;  // the worker, too
    kill(process.pid(), SIGKILL);
    for (const Fd& each : running) EXPECT_TRUE(each && wait_readable(each.get())) << "it outlived the host";
  }
}

TEST_F(ProcessTest, AWorkerWhoseKeeperIsKilledDiesAndIsReaped) {
  Process process = spawn(request({"hang_deaf"}));
  const Fd worker(open_pid_fd(process.pid()));
  kill(process.keeper_pid(), SIGKILL);
  EXPECT_TRUE(wait_readable(process.end_fd()));
  EXPECT_TRUE(wait_readable(worker.get()));
  const std::optional<Exit> exit = process.kill_and_reap(10s);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->by_signal);
  EXPECT_EQ(exit->number, SIGKILL);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ProcessTest, AKeeperThatIsStoppedIsContinuedForItsEnd) {
  Process process = spawn(request({"hang_deaf"}));
  const Fd keeper(open_pid_fd(process.keeper_pid()));
  kill(process.keeper_pid(), SIGSTOP);
  const std::optional<Exit> exit = process.kill_and_reap(10s);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->number, SIGKILL);
  EXPECT_TRUE(wait_readable(keeper.get()));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ProcessTest, TheKeeperTakesNoSignalButKill) {
  Process process = spawn(request({"play", "note:up", "hang"}));
  ASSERT_TRUE(wait_readable(process.event_fd()));
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1}) kill(process.keeper_pid(), number);
  EXPECT_NE(getpgid(process.keeper_pid()), getpgrp());
  EXPECT_NE(getsid(process.keeper_pid()), getsid(0));
  process.signal_group(SIGTERM);
  EXPECT_TRUE(wait_readable(process.end_fd()));
  const std::optional<Exit> exit = process.kill_and_reap(10s);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->number, SIGTERM);
}

}  // namespace
}  // namespace assay::host::launch
