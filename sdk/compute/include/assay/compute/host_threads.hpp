// Work of verifications on the host, cut up for the processors that this process may use.
#pragma once
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace assay::compute {

inline std::int64_t processors_for_parts() {
  constexpr int most = 16;  // more are not worth their start
  cpu_set_t set;
  // More processors than a cpu_set_t counts: enough of them.
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : most;
  return std::clamp(count, 1, most);
}

// `work(begin, end)` for parts of [0, count), at least `least` of them a thread; each part begins at a multiple of
// `step`. Blocks. Rethrows what the first part in order has thrown.
template <class Work>
void in_parts(std::int64_t count, std::int64_t least, const Work& work, std::int64_t step = 1) {
  const std::int64_t steps = (count + step - 1) / step;
  const std::int64_t parts = std::clamp<std::int64_t>(
      count / std::max<std::int64_t>(1, least), 1, std::min(processors_for_parts(), std::max<std::int64_t>(1, steps)));
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
