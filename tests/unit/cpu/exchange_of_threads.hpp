// What joins ranks that are threads of a test.
#pragma once
#include <assay/compute/algorithm_exchange.hpp>
#include <assay/plugin.hpp>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace assay::compute {

class ExchangeOfThreads final : public AlgorithmExchange {
 public:
  bool lead(const std::string& devices) override {
    const std::lock_guard lock(mutex_);
    return led_.insert(devices).second;
  }
  void put(const std::string& devices, std::int64_t index, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[{devices, index}] = text;
    changed_.notify_all();
  }
  std::string get(const std::string& devices, std::int64_t index) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_lost_ || texts_.count({devices, index}) > 0; });
    --waiting_;
    if (const auto found = texts_.find({devices, index}); found != texts_.end()) return found->second;
    throw Error(ASSAY_COMM_ERROR, "rank 0 on host n1 is gone");
  }
  // As when a process ends.
  void lose_a_rank() {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
    changed_.notify_all();
  }
  void wait_until_somebody_waits() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }
  std::size_t texts() {
    const std::lock_guard lock(mutex_);
    return texts_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> led_;
  std::map<std::pair<std::string, std::int64_t>, std::string> texts_;
  int waiting_ = 0;
  bool is_lost_ = false;
};

}  // namespace assay::compute
