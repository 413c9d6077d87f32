#include "shard_workers.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::data {
namespace {

constexpr std::size_t most_threads = 8;  // more do not make a disk faster
constexpr auto interval = std::chrono::milliseconds(100);

class ShardWorkers {
 public:
  ShardWorkers(std::size_t shards, const std::function<void(std::size_t, const Tell&)>& work)
      : shards_(shards), work_(work) {}

  void run() {
    const Tell tell = [this](std::uint64_t bytes) {
      const std::scoped_lock held(mutex_);
      done_ += bytes;
      return !stop_;
    };
    for (;;) {
      std::size_t shard = 0;
      {
        const std::scoped_lock held(mutex_);
        if (stop_ || next_ == shards_) break;
        shard = next_++;
      }
      try {
        work_(shard, tell);
      } catch (...) {
        const std::scoped_lock held(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_ = true;
      }
    }
    const std::scoped_lock held(mutex_);
    --running_;
    changed_.notify_one();
  }

  void start(std::vector<std::jthread>& threads, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      {
        const std::scoped_lock held(mutex_);
        ++running_;
      }
      threads.emplace_back([this] { run(); });
    }
  }

  void watch(std::uint64_t total, const Progress& progress) {
    std::unique_lock held(mutex_);
    while (!changed_.wait_for(held, interval, [this] { return running_ == 0; })) report(held, total, progress);
    if (!error_) report(held, total, progress);
  }

  void stop() {
    const std::scoped_lock held(mutex_);
    stop_ = true;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void report(std::unique_lock<std::mutex>& held, std::uint64_t total, const Progress& progress) {
    const std::uint64_t done = done_;
    held.unlock();
    if (progress) progress(done, total);
    held.lock();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t shards_, next_ = 0, running_ = 0;
  std::uint64_t done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  const std::function<void(std::size_t, const Tell&)>& work_;
};

}  // namespace

void for_each_shard(std::size_t shards, std::uint64_t total, const Progress& progress,
                    const std::function<void(std::size_t shard, const Tell& tell)>& work) {
  if (progress) progress(0, total);
  ShardWorkers workers(shards, work);
  {
    std::vector<std::jthread> threads;  // its destructor joins
    try {
      workers.start(threads,
                    std::min({shards, most_threads, std::size_t{std::max(1u, std::thread::hardware_concurrency())}}));
      workers.watch(total, progress);
    } catch (...) {
      workers.stop();
      throw;
    }
  }
  workers.rethrow();
}

}  // namespace assay::data
