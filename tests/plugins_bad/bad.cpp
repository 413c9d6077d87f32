// One plugin per way to misbehave while a case runs; bad_rule.cpp chooses it. All are sound at the border.
#include <assay/plugin.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "bad_rule.hpp"

namespace {

constexpr auto dtype_words = assay::names("fp32", "bf16");

[[noreturn]] void boom(const char* where) { throw std::runtime_error(std::string("boom from ") + where); }

// Through a volatile, so that the compiler does not see that the address is invalid.
[[noreturn]] void segfault() {
  volatile std::uintptr_t address = 8;
  *reinterpret_cast<volatile int*>(address) = 1;
  std::abort();
}

// Two mistakes that the sanitizers find, for the tests that see to it that they look.
int freed_memory() {
  volatile int* const number = new int(1);
  delete number;
  return *number;
}

int overflown_integer() {
  volatile int largest = std::numeric_limits<int>::max();
  return largest + 1;
}

void touch_memory_without_end() {
  constexpr std::size_t block_bytes = std::size_t{16} << 20;
  for (;;) {
    void* block = std::malloc(block_bytes);
    if (!block) throw std::bad_alloc();
    std::memset(block, 1, block_bytes);
  }
}

// Forks, and returns when the child holds so much.
pid_t start_a_child_with(std::size_t bytes) {
  int ready[2];
  if (pipe(ready) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    volatile char* const memory = static_cast<volatile char*>(std::malloc(bytes));
    for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) std::abort();
  close(ready[0]);
  close(ready[1]);
  return child;
}

[[noreturn]] void hang() {
  std::fputs("hanging\n", stdout);  // for a test that must not act before it does
  std::fflush(stdout);
  for (;;) pause();
}

// A process of another session, without a living parent and with its own environment. It says its number on
// standard output once it is there.
void leave_a_process() {
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    if (fork() > 0) _exit(0);
    const std::string script = "echo \"left behind: $$\"; exec sleep 1000";
    char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(script.c_str()),
                               nullptr};
    char* const nothing[] = {nullptr};
    execve("/bin/sh", arguments, nothing);
    _exit(9);
  }
  waitpid(between, nullptr, 0);
}

bool misbehaves_in_deinit = false;
struct AbortsAtEnd {
  bool is_armed = false;
  ~AbortsAtEnd() {
    if (is_armed) std::abort();
  }
};
AbortsAtEnd aborts_at_end;

void print_garbage() {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37);
  bytes += "\n{\"event\":\"result\",\"status\":\"wrong_result\"}\n\x1b[2J";
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stdout);
}

// On its own thread, from set-up on and for as long as the process lives.
void log_without_end() {
  std::fputs("the first line\n", stderr);
  std::thread([] {
    const std::string lines = [] {
      std::string text;
      while (text.size() < 60'000) text += "and another line that nobody asked for\n";
      return text;
    }();
    for (;;)
      if (write(1, lines.data(), lines.size()) < 0) std::abort();
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

class Bad {
 public:
  static constexpr auto id = "bad", summary = "misbehaves in one way";
  static constexpr auto params =
      assay::table(assay::Param::integer("bad_at", 3).help("the value of i at which sometimes_bad misbehaves"),
                   assay::Param::integer("i", 0).help("compared with bad_at"),
                   assay::Param::integer("bad_rank", -1).help("which rank misbehaves at the end of its life; -1: all"),
                   assay::Param::integer("step_ms", 0).unit("ms").at_least(0).help("how long a step sleeps"));
  static constexpr auto compute = assay::phase("compute"), rest = assay::phase("rest");
  static constexpr auto phases = assay::table(compute, rest);
  static constexpr auto loss = assay::Metric::per_step("loss").lower_is_better().help("not a number for nan_metric");
  static constexpr auto figure = assay::Metric::per_case("figure").help("not a number for nan_metric");
  static constexpr auto dtype = assay::Metric::word("dtype", dtype_words, "out of range for no_such_word");
  static constexpr auto metrics = assay::table(loss, figure, dtype);
  using Launch = assay::LaunchOf<Bad>;

  explicit Bad(const assay::Case& c)
      : host_(c.host()),
        bad_at_(c.get<std::int64_t>("bad_at")),
        i_(c.get<std::int64_t>("i")),
        step_ms_(c.get<std::int64_t>("step_ms")),
        is_bad_rank_(c.get<std::int64_t>("bad_rank") < 0 || c.get<std::int64_t>("bad_rank") == c.rank()) {
    if (rule == Rule::throws_in_create) boom("create");
    if (rule == Rule::unsupported)
      throw assay::Error(ASSAY_UNSUPPORTED, "this workload needs a device that nobody has");
  }
  ~Bad() {
    if (!is_bad_rank_) return;
    // Destructors are noexcept: this ends the process, as it would in any program.
    if (rule == Rule::throws_in_destroy) boom("destroy");
    if (rule == Rule::hangs_in_destroy) hang();
    if (rule == Rule::exits_in_destroy) _exit(0);
    if (rule == Rule::aborts_at_exit) std::atexit(std::abort);
    if (rule == Rule::hangs_at_exit) std::atexit([] { hang(); });
    aborts_at_end.is_armed = rule == Rule::aborts_in_static_destructor;
    misbehaves_in_deinit = true;
  }
  Bad(const Bad&) = delete;
  Bad& operator=(const Bad&) = delete;

  void setup(const assay::Launch&) {
    if (rule == Rule::throws_in_setup) boom("setup");
    if (rule == Rule::bad_alloc) throw std::bad_alloc();
    if (rule == Rule::allocates_without_end) touch_memory_without_end();
    if (rule == Rule::garbage_on_stdout) print_garbage();
    if (rule == Rule::logs_without_end) log_without_end();
    if (rule == Rule::leaves_processes) leave_a_process();
    if (rule == Rule::floods_texts)
      for (int i = 0; i < 500'000; ++i) assay::memory_moment(host_, "a moment");
  }

  void run(const Launch& launch) {
    if (step_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(step_ms_));
    if (rule == Rule::unbalanced_phases) return launch.abi()->phase_begin(launch.abi(), 0);
    if (rule == Rule::bad_phase_index) {
      launch.abi()->phase_begin(launch.abi(), 77);
      return launch.abi()->phase_end(launch.abi(), 77);
    }
    const auto phase = launch.phase(compute);
    misbehave(launch);
  }

  void finish(const Launch& launch) {
    if (rule == Rule::throws_in_finish) boom("finish");
    if (rule == Rule::nan_metric) launch.report(figure, std::numeric_limits<double>::quiet_NaN());
    if (rule == Rule::no_such_word) {
      constexpr assay::TextIn<Bad> row = dtype;
      launch.abi()->metric(launch.abi(), row.row(), static_cast<double>(dtype_words.size()));
    }
  }

  std::string verify(const assay::Launch&) {
    if (rule == Rule::throws_in_verify) boom("verify");
    if (rule == Rule::floods_texts) {
      std::string text;
      while (text.size() < 10'000'000) text += "\u00e4\u00f6\u00fc ";
      if (i_ == bad_at_) throw assay::Error(ASSAY_WRONG_RESULT, text);
      return text;
    }
    if (rule == Rule::wrong_result) throw assay::Error(ASSAY_WRONG_RESULT, "sum is 41, expected 42 within 0");
    return "nothing to check";
  }

  assay::Work work() const {
    if (rule == Rule::throws_in_work) boom("work");
    return {};
  }

 private:
  void misbehave(const Launch& launch) const {
    if (rule == Rule::throws_in_run) boom("run");
    if (rule == Rule::throws_non_std) throw 42;
    if (rule == Rule::segfaults_in_run) segfault();
    if (rule == Rule::exits) _exit(3);
    if (rule == Rule::exits_zero) std::exit(0);
    if (rule == Rule::hangs) hang();
    if (rule == Rule::garbage_on_stdout) print_garbage();
    if (rule == Rule::reads_freed_memory) std::printf("%d\n", freed_memory());
    if (rule == Rule::overflows_an_integer) std::printf("%d\n", overflown_integer());
    if (rule == Rule::holds_memory_in_a_child) {
      [[maybe_unused]] static const pid_t child = start_a_child_with(std::size_t{400} << 20);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (rule == Rule::nan_metric) launch.report(loss, std::numeric_limits<double>::quiet_NaN());
    if (rule == Rule::logs_without_end) {
      if (i_ != bad_at_) return;
      std::fputs("the last line\n", stderr);
      segfault();
    }
    if (rule == Rule::sometimes_bad)
      if (i_ == bad_at_) segfault();
    static_cast<void>(launch);
  }

  assay::Host host_;
  std::int64_t bad_at_, i_, step_ms_;
  bool is_bad_rank_;
};

void deinit() {
  if (!misbehaves_in_deinit) return;
  if (rule == Rule::aborts_in_deinit) std::abort();
  if (rule == Rule::hangs_in_deinit) hang();
}

}  // namespace

ASSAY_PLUGIN_EX("org.assay.test.bad", "1.0.0", nullptr, deinit, 0, Bad)
