// One plugin per way to misbehave while a case runs; BAD_RULE, set by the build, chooses it. All are sound at the
// border.
#include <assay/plugin.hpp>

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

namespace {

enum class Rule {
  throws_in_create,
  throws_in_setup,
  throws_in_run,
  throws_in_finish,
  throws_in_verify,
  throws_in_work,
  throws_in_destroy,
  throws_non_std,
  segfaults_in_run,
  exits,
  exits_zero,
  hangs,
  allocates_without_end,
  bad_alloc,
  wrong_result,
  unsupported,
  garbage_on_stdout,
  logs_without_end,
  sometimes_bad,
  unbalanced_phases,
  bad_phase_index,
  nan_metric,
  no_such_word,
  reads_freed_memory,
  overflows_an_integer,
};
constexpr Rule rule = Rule::BAD_RULE;
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

[[noreturn]] void hang() {
  std::fputs("hanging\n", stdout);  // for a test that must not act before it does
  std::fflush(stdout);
  for (;;) pause();
}

void print_garbage() {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37);
  bytes += "\n{\"event\":\"result\",\"status\":\"wrong_result\"}\n\x1b[2J";
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stdout);
}

// On a thread of its own, from set-up on and for as long as the process lives.
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
                   assay::Param::integer("step_ms", 0).unit("ms").at_least(0).help("how long a step sleeps"));
  static constexpr auto phases = assay::names("compute", "rest");
  static constexpr auto metrics =
      assay::table(assay::Metric::per_step("loss", nullptr, ASSAY_LOWER_IS_BETTER, "not a number for nan_metric"),
                   assay::Metric::per_case("figure", nullptr, ASSAY_NEITHER_IS_BETTER, "not a number for nan_metric"),
                   assay::Metric::word("dtype", dtype_words, "out of range for no_such_word"));

  explicit Bad(const assay::Case& c)
      : bad_at_(c.get<std::int64_t>("bad_at")), i_(c.get<std::int64_t>("i")), step_ms_(c.get<std::int64_t>("step_ms")) {
    if constexpr (rule == Rule::throws_in_create) boom("create");
    if constexpr (rule == Rule::unsupported)
      throw assay::Error(ASSAY_UNSUPPORTED, "this workload needs a device that nobody has");
  }
  ~Bad() {
    // Destructors are noexcept: this ends the process, as it would in any program.
    if constexpr (rule == Rule::throws_in_destroy) boom("destroy");
  }
  Bad(const Bad&) = delete;
  Bad& operator=(const Bad&) = delete;

  void setup(const assay::Launch&) {
    if constexpr (rule == Rule::throws_in_setup) boom("setup");
    if constexpr (rule == Rule::bad_alloc) throw std::bad_alloc();
    if constexpr (rule == Rule::allocates_without_end) touch_memory_without_end();
    if constexpr (rule == Rule::garbage_on_stdout) print_garbage();
    if constexpr (rule == Rule::logs_without_end) log_without_end();
  }

  void run(const assay::Launch& launch) {
    if (step_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(step_ms_));
    if constexpr (rule == Rule::unbalanced_phases) return launch.abi()->phase_begin(launch.abi(), 0);
    if constexpr (rule == Rule::bad_phase_index) {
      launch.abi()->phase_begin(launch.abi(), 77);
      return launch.abi()->phase_end(launch.abi(), 77);
    }
    const auto compute = launch.phase(0);
    misbehave(launch);
  }

  void finish(const assay::Launch& launch) {
    if constexpr (rule == Rule::throws_in_finish) boom("finish");
    if constexpr (rule == Rule::nan_metric) launch.metric(1, std::numeric_limits<double>::quiet_NaN());
    if constexpr (rule == Rule::no_such_word) launch.metric(2, static_cast<double>(dtype_words.size()));
  }

  std::string verify(const assay::Launch&) {
    if constexpr (rule == Rule::throws_in_verify) boom("verify");
    if constexpr (rule == Rule::wrong_result) throw assay::Error(ASSAY_WRONG_RESULT, "sum is 41, expected 42 within 0");
    return "nothing to check";
  }

  assay::Work work() const {
    if constexpr (rule == Rule::throws_in_work) boom("work");
    return {};
  }

 private:
  void misbehave(const assay::Launch& launch) const {
    if constexpr (rule == Rule::throws_in_run) boom("run");
    if constexpr (rule == Rule::throws_non_std) throw 42;
    if constexpr (rule == Rule::segfaults_in_run) segfault();
    if constexpr (rule == Rule::exits) _exit(3);
    if constexpr (rule == Rule::exits_zero) std::exit(0);
    if constexpr (rule == Rule::hangs) hang();
    if constexpr (rule == Rule::garbage_on_stdout) print_garbage();
    if constexpr (rule == Rule::reads_freed_memory) std::printf("%d\n", freed_memory());
    if constexpr (rule == Rule::overflows_an_integer) std::printf("%d\n", overflown_integer());
    if constexpr (rule == Rule::nan_metric) launch.metric(0, std::numeric_limits<double>::quiet_NaN());
    if constexpr (rule == Rule::logs_without_end) {
      if (i_ != bad_at_) return;
      std::fputs("the last line\n", stderr);
      segfault();
    }
    if constexpr (rule == Rule::sometimes_bad)
      if (i_ == bad_at_) segfault();
    static_cast<void>(launch);
  }

  std::int64_t bad_at_, i_, step_ms_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.bad", "1.0.0", Bad)
