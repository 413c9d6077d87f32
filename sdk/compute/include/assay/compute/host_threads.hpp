// Work of verifications on the host, cut up for the processors that this process may use.
#pragma once
#include <sched.h>
#include <assay/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace assay::compute {

// Returns the number of processors that the calling thread may use.
inline int usable_processors() {
  constexpr int capacity = 1 << 15;  // the kernel refuses a set that is smaller than its own
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(capacity));
  const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
  if (!set || sched_getaffinity(0, bytes, set.get()) != 0)
    throw Error(ASSAY_UNSUPPORTED, "the operating system does not report which processors a thread may use");
  return std::max(CPU_COUNT_S(bytes, set.get()), 1);
}

// `work(begin, end)` for parts of [0, count), at least `least` of them a thread; each part begins at a multiple of
// `step`. Blocks. Rethrows what the first part in order has thrown.
template <class Work>
void in_parts(std::int64_t count, std::int64_t least, const Work& work, std::int64_t step = 1) {
  constexpr int most_threads = 16;  // more are not worth their start
  const std::int64_t steps = (count + step - 1) / step;
  const std::int64_t parts = std::clamp<std::int64_t>(
      count / std::max<std::int64_t>(1, least), 1,
      std::min<std::int64_t>(std::min(usable_processors(), most_threads), std::max<std::int64_t>(1, steps)));
  const auto begin_of = [&](std::int64_t part) { return std::min(count, steps * part / parts * step); };
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(parts));
  const auto run = [&](std::int64_t part) {
    try {
      work(begin_of(part), begin_of(part + 1));
    } catch (...) {
      failures[static_cast<std::size_t>(part)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::int64_t part = 1; part < parts; ++part) others.emplace_back([&run, part] { run(part); });
    run(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace assay::compute
