#include "telemetry/wake_up_cost.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <thread>
#include <vector>

#include "telemetry/contention.hpp"

namespace assay::host::telemetry {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds_max = 200, rounds_min = 20;
constexpr std::chrono::milliseconds patience{20};
// Where a round trip could not be measured; and the limits of what is believed.
constexpr double usual_sleep_us = 20, shortest_us = 2, longest_us = 50;
constexpr double usual_iteration_ns = 20;

void wait_until_it_is(std::atomic<int>& word, int wanted) {
  for (int seen = word.load(); seen != wanted; seen = word.load())
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void set_and_wake(std::atomic<int>& word, int value) {
  word = value;
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Best effort: on one processor both meet, and waking looks cheaper than it is.
void bind_to(int processor) {
  cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(processor) + 1);
  if (!set) return;
  const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processor) + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<std::size_t>(processor), bytes, set);
  ::sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

// The median of round trips between two threads that sleep whenever it is not their turn.
double round_trip_us(int one_processor, int other_processor) {
  std::atomic<int> word{0};  // odd: the other's turn; negative: the end
  std::vector<double> trips_us;
  std::thread one([&] {
    bind_to(one_processor);
    const auto deadline = Clock::now() + patience;
    for (int i = 0; i < rounds_max && Clock::now() < deadline; ++i) {
      const auto begin = Clock::now();
      set_and_wake(word, 2 * i + 1);
      wait_until_it_is(word, 2 * i + 2);
      trips_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    set_and_wake(word, -1);
  });
  std::thread other([&] {
    bind_to(other_processor);
    for (int seen = word.load(); seen >= 0; seen = word.load()) {
      if (seen % 2 == 1)
        set_and_wake(word, seen + 1);
      else
        ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
  });
  one.join();
  other.join();
  if (trips_us.size() < rounds_min) return 0;
  const auto middle = trips_us.begin() + static_cast<std::ptrdiff_t>(trips_us.size() / 2);
  std::nth_element(trips_us.begin(), middle, trips_us.end());
  return *middle;
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("" ::: "memory");
#endif
}

double spin_iteration_ns() {
  constexpr int iterations = 2000, times = 5;
  std::atomic<int> word{0};
  double shortest_ns = 0;
  for (int time = 0; time < times; ++time) {
    const auto begin = Clock::now();
    for (int i = 0; i < iterations && word.load(std::memory_order_relaxed) == 0; ++i) pause_briefly();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / iterations;
    shortest_ns = time == 0 ? ns : std::min(shortest_ns, ns);
  }
  return shortest_ns;
}

}  // namespace

WaitCosts measure_wait_costs() {
  const std::set<int> usable = usable_processors();
  WaitCosts costs;
  if (usable.size() > 1) costs.sleep_us = round_trip_us(*usable.begin(), *usable.rbegin());
  costs.iteration_ns = spin_iteration_ns();
  return costs;
}

SpinBound spin_bound(const WaitCosts& costs) {
  const double us = std::clamp(costs.sleep_us > 0 ? costs.sleep_us : usual_sleep_us, shortest_us, longest_us);
  const double iteration_ns = costs.iteration_ns > 0 ? costs.iteration_ns : usual_iteration_ns;
  // The nearest power of two, so that two runs on one machine mostly have the same.
  const double exponent = std::round(std::log2(std::max(us * 1e3 / iteration_ns, 1.0)));
  const auto count = std::int64_t{1} << static_cast<int>(std::clamp(exponent, 0.0, 20.0));
  return {count, static_cast<double>(count) * iteration_ns * 1e-3};
}

}  // namespace assay::host::telemetry
