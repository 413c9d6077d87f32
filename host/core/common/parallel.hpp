// The same work for many elements, by a few threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace assay::host {

// Calls call(i) for every i below `count`, in any order and by up to four threads, and returns when all are done. Calls
// for different i must not meet in what they write. Below a few hundred elements it is this thread alone. Rethrows the
// first exception; calls that have not begun by then are left out.
//
// The work of `Work::waiting` is that of the disk: more threads than processors take part, in smaller portions, since a
// file system flushes together what is asked for together.
enum class Work { computing, waiting };
template <class Call>
void for_each_in_parallel(std::size_t count, const Call& call, Work kind = Work::computing) {
  const bool waits = kind == Work::waiting;
  const std::size_t at_once = waits ? 4 : 64, most_threads = waits ? 16 : 4;
  const std::size_t processors = waits ? most_threads : std::max(std::thread::hardware_concurrency(), 1U);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto work = [&] {
    try {
      for (std::size_t begin = 0; (begin = next.fetch_add(at_once)) < count;)
        for (std::size_t i = begin; i < std::min(begin + at_once, count); ++i) call(i);
    } catch (...) {
      const std::lock_guard lock(failing);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> threads;
  const std::size_t wanted = std::min<std::size_t>({most_threads, processors, count / (4 * at_once) + 1});
  for (std::size_t i = 1; i < wanted; ++i) try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads are to be had: the others do it
      break;
    }
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay::host
