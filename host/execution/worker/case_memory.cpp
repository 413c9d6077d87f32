#include "worker/case_memory.hpp"

#include <assay/memory_account.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/process_tree.hpp"

namespace assay::host::worker {
namespace {

static_assert(memory_kind_count == ASSAY_MEMORY_KIND_COUNT, "common/memory_kinds.hpp has the kinds of assay/abi.h");

constexpr std::size_t most_moments = 1000, most_moment_name_bytes = 100;

// Null for a device that takes no memory by itself, or does not say so.
const assay_memory_account* device_account(const plugin::OpenDevice& device) {
  const auto* account = static_cast<const assay_memory_account*>(device.api().get_extension(ASSAY_EXT_MEMORY_ACCOUNT));
  return account && ASSAY_HAS(account, assay_memory_account, tell) ? account : nullptr;
}

double in_mib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace

CaseMemory::CaseMemory(const plugin::OpenDevice& device, CaseObserver& observer, PluginMessages& messages)
    : device_(device), observer_(observer), messages_(messages) {
  abi_.struct_size = sizeof abi_;
  abi_.impl = this;
  abi_.allocate = [](const assay_memory* m, assay_memory_kind kind, std::size_t bytes, assay_str label,
                     void** out) noexcept { return from(m).allocate(kind, bytes, view_of(label), out); };
  abi_.release = [](const assay_memory* m, void* address) noexcept { from(m).release(address); };
  abi_.report = [](const assay_memory* m, assay_memory_kind kind, std::int64_t delta, assay_str) noexcept {
    if (kind < 0 || kind >= ASSAY_MEMORY_KIND_COUNT) return;
    CaseMemory& self = from(m);
    self.ledger_.add(static_cast<std::size_t>(kind), delta);
    self.observer_.memory(self.ledger_.current(), self.ledger_.peak());
  };
  abi_.moment = [](const assay_memory* m, assay_str name) noexcept { from(m).name_moment(view_of(name)); };
  if (const auto* account = device_account(device_)) account->tell(device_.handle(), &abi_);
  plan_abi_ = {sizeof plan_abi_, this,
               [](const assay_memory_plan* p, void* arena, std::size_t offset, std::size_t bytes, std::int32_t first,
                  std::int32_t last, assay_str name) noexcept {
                 from(p).plan_buffer(arena, {std::string(view_of(name)), offset, bytes, first, last});
               }};
}

CaseMemory::~CaseMemory() {
  if (const auto* account = device_account(device_)) account->tell(device_.handle(), nullptr);
  for (const auto& [address, block] : blocks_) device_.api().release(device_.handle(), address);
}

void CaseMemory::name_moment(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (moments_named_ >= most_moments) {
      messages_.warn(
          fmt::format("the workload names more moments of its memory than {}: the first ones are kept", most_moments));
      return;
    }
    ++moments_named_;
  }
  ledger_.moment(cut_to(std::string(name.substr(0, most_moment_name_bytes + 1)), most_moment_name_bytes));
}

std::size_t CaseMemory::blocks_left() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

std::string CaseMemory::held_by_kind() const {
  const measure::MemoryAmounts held = ledger_.current();
  std::string text;
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (held.bytes[k] > 0)
      text += fmt::format("{}{} {:.1f} MiB", text.empty() ? "" : ", ", memory_kind_name(k),
                          in_mib(static_cast<std::size_t>(held.bytes[k])));
  return text.empty() ? "nothing" : text;
}

bool CaseMemory::is_beyond_limit(std::size_t bytes) const {
  if (stage_ != ASSAY_STAGE_VERIFY || !limit_bytes_) return false;
  // Samples of what is compared go through the heap, which nobody asks for here. Found of a split decoder that is most
  // of all embeddings: a third of all.
  const std::uint64_t allowed = *limit_bytes_ - *limit_bytes_ / 3, held = resident_bytes_of(getpid());
  return held > allowed || bytes > allowed - held;
}

assay_status CaseMemory::allocate(assay_memory_kind kind, std::size_t bytes, std::string_view label, void** out) {
  if (kind < 0 || kind >= ASSAY_MEMORY_KIND_COUNT) {
    messages_.set(fmt::format("memory kind {} does not exist", kind));
    return ASSAY_INVALID_ARGUMENT;
  }
  const char* kind_name = memory_kind_name(static_cast<std::size_t>(kind));
  observer_.allocation(fmt::format("{:.1f} MiB of {} ({})", in_mib(bytes), kind_name, label));
  if (stage_ == ASSAY_STAGE_MEASURE) ++allocations_while_measuring_;
  if (is_beyond_limit(bytes)) {
    // By is_beyond_limit(): two thirds of the limit hold what there is and what is asked for.
    const double least_mib = 1.5 * (in_mib(resident_bytes_of(getpid())) + in_mib(bytes));
    const std::string wanted =
        in_mib(bytes) < 1 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} MiB", in_mib(bytes));
    // The host looks every few milliseconds, and a case may have been above the limit between two looks.
    const std::uint64_t peak = own_peak_resident_bytes();
    const std::string of_case =
        peak == 0 ? "[run] memory_limit"
        : peak > *limit_bytes_
            ? fmt::format("the case itself was above [run] memory_limit for a moment ({:.0f} MiB), and it",
                          in_mib(peak))
            : fmt::format("the case fits (its process held {:.0f} MiB at most), but [run] memory_limit", in_mib(peak));
    messages_.set(
        fmt::format("{} leaves no room for the {} of {} ({}) of its verification. Up to here it needs a limit of more "
                    "than {:.0f} MiB, later perhaps more. Memory held now: {}",
                    of_case, wanted, kind_name, label,
                    std::floor(std::max(least_mib, in_mib(static_cast<std::size_t>(peak)))), held_by_kind()));
    return ASSAY_OUT_OF_MEMORY;
  }
  void* address = nullptr;
  if (const assay_status s = device_.api().allocate(device_.handle(), bytes, &address); s != ASSAY_OK) {
    messages_.set(fmt::format("{:.1f} MiB of {} ({}): {}; held: {}", in_mib(bytes), kind_name, label,
                              device_.api().error_text(), held_by_kind()));
    if (history_) {
      assay_device_info info{};
      info.struct_size = sizeof info;
      if (device_.api().info(device_.handle(), &info) != ASSAY_OK) info.memory_free_bytes = 0;
      history_->refused(bytes, info.memory_free_bytes, static_cast<std::size_t>(kind), label);
    }
    return s;
  }
  {
    const std::lock_guard lock(mutex_);
    blocks_[address] = {bytes, kind};
  }
  if (history_)
    history_->allocated(reinterpret_cast<std::uintptr_t>(address), bytes, static_cast<std::size_t>(kind), label);
  ledger_.add(static_cast<std::size_t>(kind), static_cast<std::int64_t>(bytes));
  observer_.memory(ledger_.current(), ledger_.peak());
  observer_.allocation("");
  *out = address;
  return ASSAY_OK;
}

void CaseMemory::plan_buffer(void* arena, profile::PlannedBuffer buffer) {
  if (!history_) return;
  const std::string name = buffer.name;
  if (!history_->planned(reinterpret_cast<std::uintptr_t>(arena), std::move(buffer)))
    std::fprintf(stderr, "[host warning] the plugin's memory plan has '%s' where it has no memory\n", name.c_str());
}

void CaseMemory::release(void* address) {
  Block block{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) {
      std::fprintf(stderr, "[host warning] the plugin released %p, which was not allocated here\n", address);
      return;
    }
    block = found->second;
    blocks_.erase(found);
  }
  device_.api().release(device_.handle(), address);
  if (history_) history_->released(reinterpret_cast<std::uintptr_t>(address));
  ledger_.add(static_cast<std::size_t>(block.kind), -static_cast<std::int64_t>(block.bytes));
  observer_.memory(ledger_.current(), ledger_.peak());
}

}  // namespace assay::host::worker
