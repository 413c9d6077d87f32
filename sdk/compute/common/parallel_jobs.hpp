// ParallelJobs runs jobs on its own threads; PostponedCalls keeps the calls that have to wait for them. Plain C++.
#pragma once
#include <assay/compute/host_threads.hpp>
#include <assay/plugin.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace assay::compute {

// Runs up to `most_threads` jobs at a time. All calls by one thread; what jobs share is theirs to guard.
class ParallelJobs {
 public:
  explicit ParallelJobs(std::size_t most_threads) : most_threads_(std::max<std::size_t>(most_threads, 1)) {}
  // The destructor drops jobs that have not begun (their futures say broken_promise) and waits for those that have.
  ~ParallelJobs() {
    {
      std::deque<Task> dropped;  // which go when the lock has gone
      const std::lock_guard lock(mutex_);
      dropped.swap(queue_);
    }
    wait();
  }
  ParallelJobs(const ParallelJobs&) = delete;
  ParallelJobs& operator=(const ParallelJobs&) = delete;

  // The job begins at once where fewer than most_threads are at work, else as soon as one is free, in the order of
  // these calls. It is called with its thread's number, 0 to most_threads - 1, which no two jobs have at a time. What
  // it throws its future throws.
  template <class Job>
  std::future<std::invoke_result_t<Job&, std::size_t>> start(Job job) {
    std::packaged_task<std::invoke_result_t<Job&, std::size_t>(std::size_t)> task(std::move(job));
    auto result = task.get_future();
    std::unique_lock lock(mutex_);
    queue_.emplace_back([task = std::move(task)](std::size_t thread) mutable { task(thread); });
    if (queue_.size() <= idle_ || threads_.size() == most_threads_) {
      lock.unlock();
      changed_.notify_one();
      return result;
    }
    try {
      threads_.emplace_back([this, number = threads_.size()] { work(number); });
    } catch (const std::system_error&) {
      if (!threads_.empty()) return result;  // a thread that is at work takes the job later
      queue_.pop_back();
      throw;
    }
    return result;
  }

  // Blocks until all jobs are done and no thread is left.
  void wait() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    ending_ = false;  // nobody else is there
  }

 private:
  using Task = std::packaged_task<void(std::size_t)>;

  void work(std::size_t number) {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      --idle_;
      if (queue_.empty()) return;
      Task task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task(number);
      task = Task();  // what the job held goes before its thread counts as free
      lock.lock();
    }
  }

  const std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  std::size_t idle_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// Calls that were put off, in their order.
class PostponedCalls {
 public:
  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }
  bool empty() const { return calls_.empty(); }
  // Makes the calls. The first exception passes through, and the calls behind it are dropped.
  void carry_out() {
    for (const std::vector<std::function<void()>> calls = std::exchange(calls_, {}); const auto& call : calls) call();
  }

 private:
  std::vector<std::function<void()>> calls_;
};

}  // namespace assay::compute
