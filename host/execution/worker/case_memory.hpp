// Memory of a case: what its plugin takes of the device (assay.memory/1), by kind, and how its arenas are laid out
// (assay.memory_plan/1).
#pragma once
#include <assay/abi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "measure/memory_ledger.hpp"
#include "plugin/device_library.hpp"
#include "profile/memory_snapshot.hpp"
#include "worker/observer.hpp"
#include "worker/plugin_messages.hpp"

namespace assay::host::worker {

// Not movable: plugins and devices hold its address.
class CaseMemory {
 public:
  CaseMemory(const plugin::OpenDevice& device, CaseObserver& observer, PluginMessages& messages);
  CaseMemory(const CaseMemory&) = delete;
  CaseMemory& operator=(const CaseMemory&) = delete;
  ~CaseMemory();  // releases device memory that the plugin left behind

  const assay_memory* abi() const { return &abi_; }
  const assay_memory_plan* plan_abi() const { return history_ ? &plan_abi_ : nullptr; }

  void enter(assay_stage stage) { stage_ = stage; }
  // Of a device whose memory is this process's: a verification is refused what would bring it to the limit at which
  // the host ends the worker, and can say what it leaves unchecked.
  void set_limit(std::uint64_t bytes) { limit_bytes_ = bytes; }

  // From here on: what is taken and released, and what the plugin says of its arenas.
  void begin_history() { history_.emplace(); }
  // The history so far, and no more of it: what follows is not part of the steps that were measured.
  std::optional<profile::MemoryHistory> take_history() { return std::exchange(history_, std::nullopt); }

  measure::MemoryLedger& ledger() { return ledger_; }
  std::int64_t allocations_while_measuring() const { return allocations_while_measuring_; }
  std::size_t blocks_left() const;

 private:
  struct Block {
    std::size_t bytes;
    assay_memory_kind kind;
  };
  static CaseMemory& from(const assay_memory* memory) { return *static_cast<CaseMemory*>(memory->impl); }
  static CaseMemory& from(const assay_memory_plan* plan) { return *static_cast<CaseMemory*>(plan->impl); }
  assay_status allocate(assay_memory_kind kind, std::size_t bytes, std::string_view label, void** out);
  void release(void* address);
  void plan_buffer(void* arena, profile::PlannedBuffer buffer);
  void name_moment(std::string_view name);
  std::string held_by_kind() const;
  bool is_beyond_limit(std::size_t bytes) const;

  const plugin::OpenDevice& device_;
  CaseObserver& observer_;
  PluginMessages& messages_;
  measure::MemoryLedger ledger_;
  std::optional<std::uint64_t> limit_bytes_;
  assay_memory abi_{};
  assay_memory_plan plan_abi_{};
  mutable std::mutex mutex_;  // of blocks and moments: some calls are [any-thread]
  std::size_t moments_named_ = 0;
  std::map<void*, Block> blocks_;
  std::optional<profile::MemoryHistory> history_;  // nothing: not asked for
  assay_stage stage_ = ASSAY_STAGE_SETUP;
  std::int64_t allocations_while_measuring_ = 0;
};

}  // namespace assay::host::worker
