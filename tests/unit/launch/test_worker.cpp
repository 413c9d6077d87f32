// Stands in the worker's place: does what its first argument says.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "launch/worker_channel.hpp"

namespace {

using assay::host::Stage;
using assay::host::launch::WorkerChannel;
using nlohmann::json;

void send_result(WorkerChannel& channel) { channel.send(R"({"event":"result","status":"ok"})"); }

std::vector<int> open_descriptors() {
  std::vector<int> open;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(folder)) open.push_back(std::atoi(entry->d_name));
  closedir(folder);
  return open;
}

std::string read_all(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What spawn() promises, seen from inside.
int report_surroundings() {
  json found{{"event", "result"}, {"open", open_descriptors()}};
  char target[256] = {};
  const ssize_t n = readlink("/proc/self/fd/0", target, sizeof target - 1);
  cpu_set_t processors;
  sched_getaffinity(0, sizeof processors, &processors);
  found["processors"] = json::array();
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &processors)) found["processors"].push_back(processor);
  found["stdin"] = std::string(target, n > 0 ? static_cast<std::size_t>(n) : 0);
  found["group_is_own"] = getpgrp() == getpid();
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  found["core_bytes"] = core.rlim_cur;
  found["oom_score_adj"] = std::atoi(read_all("/proc/self/oom_score_adj").c_str());
  struct sigaction pipe_action {};
  sigaction(SIGPIPE, nullptr, &pipe_action);
  found["sigpipe_is_default"] = pipe_action.sa_handler == SIG_DFL;
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  found["sigusr1_is_blocked"] = sigismember(&blocked, SIGUSR1) == 1;
  const char* set = std::getenv("LAUNCH_TEST_SET");
  found["set"] = set ? set : "";
  found["unset"] = std::getenv("LAUNCH_TEST_UNSET") == nullptr;
  WorkerChannel channel;
  found["spec"] = channel.read_spec();
  channel.send(found.dump());
  return 0;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

void reach_step_4(WorkerChannel& channel) {
  channel.board().enter(Stage::measure, 10);
  channel.board().set_step(4);
  channel.board().set_phase(1);
}

int grow() {
  WorkerChannel channel;
  channel.board().enter(Stage::setup);
  channel.board().set_last_allocation("16 MiB for 'block'");
  for (std::uint64_t held = 0;; held += 16 << 20) {
    channel.board().set_memory(3, held, held);
    std::memset(std::malloc(16 << 20), 1, 16 << 20);
  }
}

// As a case that fits until it is verified.
int grow_in_verify() {
  WorkerChannel channel;
  channel.board().enter(Stage::measure, 10);
  usleep(200'000);
  channel.board().enter(Stage::verify);
  for (;;) std::memset(std::malloc(16 << 20), 1, 16 << 20);
}

void touch(std::size_t bytes) {
  volatile char* const memory = static_cast<volatile char*>(std::malloc(bytes));
  for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}

// The worker itself stays small.
int grow_in_a_child() {
  WorkerChannel channel;
  channel.board().enter(Stage::measure, 10);
  if (fork() == 0)
    for (;;) touch(16 << 20);
  sleep_for_ever();
}

// A child that shares its memory with the worker, and has half of it again for itself.
int share_with_a_child() {
  WorkerChannel channel;
  channel.board().enter(Stage::measure, 10);
  touch(96 << 20);
  int ready[2];
  if (pipe(ready) != 0) return 9;
  const pid_t child = fork();
  if (child == 0) {
    touch(48 << 20);
    [[maybe_unused]] const ssize_t n = write(ready[1], "x", 1);
    sleep_for_ever();
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return 9;
  std::this_thread::sleep_for(std::chrono::seconds(1));  // for the host to look
  channel.board().enter(Stage::verify);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  send_result(channel);
  return 0;
}

int leave_children_behind() {
  WorkerChannel channel;
  // Both hold their end of this pipe until they are in place: the second one outside of the worker's group.
  int ready[2];
  if (pipe(ready) != 0) return 9;
  const pid_t inside = fork();
  if (inside == 0) {
    close(ready[1]);
    sleep_for_ever();
  }
  const pid_t outside = fork();
  if (outside == 0) {
    setsid();
    close(ready[1]);
    sleep_for_ever();
  }
  close(ready[1]);
  char byte = 0;
  if (read(ready[0], &byte, 1) != 0) return 9;
  channel.send(json{{"event", "children"}, {"inside", inside}, {"outside", outside}}.dump());
  send_result(channel);
  return 0;
}

// A process that nothing but the worker's keeper can find: of another session, without a living parent, and with an
// its own environment.
pid_t start_stray() {
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) _exit(9);
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    const pid_t stray = fork();
    if (stray == 0) {
      char* const arguments[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
      char* const nothing[] = {nullptr};
      execve("/bin/sleep", arguments, nothing);
      _exit(9);
    }
    [[maybe_unused]] const ssize_t n = write(told[1], &stray, sizeof stray);
    _exit(0);
  }
  close(told[1]);
  pid_t stray = 0;
  if (read(told[0], &stray, sizeof stray) != sizeof stray) _exit(9);
  // The end of the pipe: the program is there.
  char byte = 0;
  while (read(told[0], &byte, 1) > 0) {
  }
  close(told[0]);
  waitpid(between, nullptr, 0);
  return stray;
}

int write_raw(const std::string& text) {
  const ssize_t n = write(3, text.data(), text.size());
  return n == static_cast<ssize_t>(text.size()) ? 0 : 9;
}

int vandalise_descriptors() {
  WorkerChannel channel;
  for (int fd = 0; fd < 100; ++fd) {
    [[maybe_unused]] const ssize_t n = write(fd, "garbage\n", 8);
    close(fd);
  }
  send_result(channel);
  return 0;
}

int be_noisy() {
  WorkerChannel channel;
  for (int line = 1; line <= 30; ++line) std::printf("line %d\n", line);
  std::printf("\xff\x01 binary\n");
  std::raise(SIGKILL);
  return 0;
}

// As much text as is said, in one write a line, and an end that no destructor sees.
int flood(std::uint64_t mebibytes) {
  const std::string line = std::string(4095, 'f') + "\n";
  for (std::uint64_t i = 0; i < mebibytes * 256; ++i)
    if (write(i % 2 == 0 ? 1 : 2, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return 9;
  const std::string last = "the very last line\n";
  if (write(2, last.data(), last.size()) < 0) return 9;
  std::raise(SIGKILL);
  return 0;
}

void wait_for_file(const std::string& file) {
  while (access(file.c_str(), F_OK) != 0) usleep(1000);
}

// The process lives on in this thread while its main thread is gone: what a process that the kernel takes down looks
// like, for as long as is wanted.
void leave_the_main_thread(std::function<void()> go_on) {
  std::thread([go_on = std::move(go_on), main_thread = pthread_self()] {
    pthread_join(main_thread, nullptr);
    go_on();
  }).detach();
  pthread_exit(nullptr);
}

// From here on SIGTERM waits for whoever asks for it.
sigset_t hold_term() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  return term;
}

// One rank of a group: does what the arguments say, one after the other. "name:value", where a value is needed.
void play(WorkerChannel& channel, std::span<char*> script) {
  for (std::size_t i = 0; i < script.size(); ++i) {
    const std::string line = script[i];
    const std::size_t colon = line.find(':');
    const std::string verb = line.substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (verb == "setup") {
      channel.board().enter(Stage::setup);
    } else if (verb == "step") {
      channel.board().enter(Stage::measure, 10);
      channel.board().set_step(std::stoul(value));
      channel.board().set_phase(1);
    } else if (verb == "enter") {
      channel.board().enter(assay::host::stage_of(value).value());
    } else if (verb == "strays") {
      std::vector<pid_t> strays;
      for (int i = 0; i < std::stoi(value); ++i) strays.push_back(start_stray());
      channel.send(json{{"event", "strays"}, {"strays", strays}}.dump());
    } else if (verb == "list_strays") {  // two, and the worker itself, into a file that appears whole
      std::ofstream(value + ".part") << getpid() << ' ' << start_stray() << ' ' << start_stray() << '\n';
      std::rename((value + ".part").c_str(), value.c_str());
    } else if (verb == "note") {
      channel.send(json{{"event", "note"}, {"text", value}}.dump());
    } else if (verb == "result") {
      channel.send(json{{"event", "result"}, {"status", value}}.dump());
    } else if (verb == "wait") {
      wait_for_file(value);
    } else if (verb == "deaf") {
      std::signal(SIGTERM, SIG_IGN);
    } else if (verb == "waits") {
      channel.board().begin_wait();
    } else if (verb == "hang") {
      sleep_for_ever();
    } else if (verb == "beat") {
      for (;; usleep(1000)) channel.board().beat();
    } else if (verb == "nap") {  // milliseconds
      usleep(1000 * static_cast<useconds_t>(std::stoi(value)));
    } else if (verb == "hold_term") {
      hold_term();
    } else if (verb == "until_term") {  // as one that aborts its communicator and reports
      const sigset_t term = hold_term();
      channel.send(R"({"event":"note","text":"ready for SIGTERM"})");
      int number = 0;
      sigwait(&term, &number);
    } else if (verb == "signal") {
      std::signal(std::stoi(value), SIG_DFL);
      std::raise(std::stoi(value));
    } else if (verb == "exit") {
      _exit(std::stoi(value));
    } else if (verb == "vanish") {
      leave_the_main_thread([&channel, rest = script.subspan(i + 1)] { play(channel, rest); });
    } else {
      std::fprintf(stderr, "unknown line '%s'\n", line.c_str());
      _exit(99);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&] { return argc > 2 ? std::atoi(argv[2]) : 0; };
  const std::map<std::string, std::function<int()>> modes = {
      {"surroundings", report_surroundings},
      {"ok",
       [] {
         WorkerChannel channel;
         channel.send(R"({"event":"note","nested":{"event":"result"}})");
         send_result(channel);
         return 0;
       }},
      {"exit", number},
      {"exit_after_result",
       [&] {
         WorkerChannel channel;
         send_result(channel);
         return number();
       }},
      {"signal",
       [&] {
         WorkerChannel channel;
         reach_step_4(channel);
         std::signal(number(), SIG_DFL);  // a sanitizer would answer it otherwise
         std::raise(number());
         return 0;
       }},
      {"hang",
       [] {
         WorkerChannel channel;
         reach_step_4(channel);
         sleep_for_ever();
         return 0;
       }},
      {"hang_deaf",
       [] {
         std::signal(SIGTERM, SIG_IGN);
         WorkerChannel channel;
         reach_step_4(channel);
         sleep_for_ever();
         return 0;
       }},
      {"hang_after_result",
       [] {
         WorkerChannel channel;
         send_result(channel);
         channel.board().enter(Stage::destroy);
         sleep_for_ever();
         return 0;
       }},
      {"close_pipe",
       [] {
         close(3);
         sleep_for_ever();
         return 0;
       }},
      {"grow", grow},
      {"grow_in_verify", grow_in_verify},
      {"grow_in_a_child", grow_in_a_child},
      {"share_with_a_child", share_with_a_child},
      {"play",
       [&] {
         static WorkerChannel channel;  // outlives the main thread where that leaves
         play(channel, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
         return 0;
       }},
      {"children", leave_children_behind},
      {"torn", [] { return write_raw("{\"event\":\"note\"}\n{\"event\":\"result\",\"sta"); }},
      {"malformed", [] { return write_raw("not json\n[1,2]\n{\"event\":\"result\"}\n"); }},
      {"vandal", vandalise_descriptors},
      {"noisy", be_noisy},
      {"flood", [&] { return flood(static_cast<std::uint64_t>(number())); }},
  };
  const auto found = modes.find(mode);
  if (found == modes.end()) {
    std::fprintf(stderr, "unknown mode '%s'\n", mode.c_str());
    return 99;
  }
  return found->second();
}
