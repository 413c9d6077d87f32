// assay.comm/1 for ranks that are threads of this process.
#pragma once
#include <assay/comm.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace assay::comm::nccl {

class FakeRanks {
 public:
  explicit FakeRanks(std::int32_t count, std::int64_t timeout_ms = 60000) : tables_(static_cast<std::size_t>(count)) {
    for (std::int32_t rank = 0; rank < count; ++rank) {
      assay_comm& table = tables_[static_cast<std::size_t>(rank)];
      table = {};
      table.struct_size = sizeof table;
      table.impl = this;
      table.rank = table.local_rank = rank;
      table.rank_count = table.local_rank_count = count;
      table.host_name = "n1";
      table.timeout_ms = timeout_ms;
      table.set = set;
      table.get = get;
      table.exchange = exchange;
      table.begin_wait = table.end_wait = [](const assay_comm*) noexcept {};
      table.aborted = [](const assay_comm* t) noexcept -> std::int32_t { return self(t).aborted.load(); };
    }
  }
  const assay_comm& rank(std::int32_t rank) const { return tables_[static_cast<std::size_t>(rank)]; }

  std::atomic<bool> aborted = false;
  std::atomic<bool> exchange_fails = false;

 private:
  static FakeRanks& self(const assay_comm* table) { return *static_cast<FakeRanks*>(table->impl); }
  static std::string text(assay_str s) { return {s.data, s.size}; }

  static assay_status set(const assay_comm* table, assay_str key, const void* data, std::size_t bytes) noexcept {
    FakeRanks& ranks = self(table);
    const std::lock_guard lock(ranks.mutex_);
    ranks.values_[text(key)].assign(static_cast<const char*>(data), bytes);
    ranks.changed_.notify_all();
    return ASSAY_OK;
  }
  static assay_status get(const assay_comm* table, assay_str key, std::int64_t, void* data, std::size_t capacity,
                          std::size_t* bytes) noexcept {
    FakeRanks& ranks = self(table);
    std::unique_lock lock(ranks.mutex_);
    ranks.changed_.wait(lock, [&] { return ranks.values_.count(text(key)) != 0; });
    const std::string& value = ranks.values_[text(key)];
    *bytes = value.size();
    std::memcpy(data, value.data(), std::min(capacity, value.size()));
    return ASSAY_OK;
  }
  static assay_status exchange(const assay_comm* table, assay_str name, std::int64_t, const void* mine,
                               std::size_t bytes, void* all) noexcept {
    FakeRanks& ranks = self(table);
    if (ranks.exchange_fails) return ASSAY_COMM_ERROR;
    std::unique_lock lock(ranks.mutex_);
    Round& round = ranks.rounds_[text(name)];
    round.all.resize(ranks.tables_.size() * bytes);
    std::memcpy(round.all.data() + static_cast<std::size_t>(table->rank) * bytes, mine, bytes);
    ++round.came;
    ranks.changed_.notify_all();
    ranks.changed_.wait(lock, [&] { return round.came == ranks.tables_.size(); });
    std::memcpy(all, round.all.data(), round.all.size());
    return ASSAY_OK;
  }

  struct Round {
    std::vector<char> all;
    std::size_t came = 0;
  };
  std::vector<assay_comm> tables_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, Round> rounds_;
};

}  // namespace assay::comm::nccl
