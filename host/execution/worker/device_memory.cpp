#include "worker/device_memory.hpp"

#include <string_view>

namespace assay::host::worker {
namespace {

std::int64_t free_bytes_of(const plugin::OpenDevice& device) {
  return static_cast<std::int64_t>(device.info().memory_free_bytes);
}

bool is_cpu(const plugin::OpenDevice& device) { return std::string_view(device.api().kind) == "cpu"; }

}  // namespace

DeviceMemoryUse::DeviceMemoryUse(const plugin::OpenDevice& device) : device_(device) {
  if (!is_cpu(device_) && !device_.is_observed()) free_at_begin_bytes_ = free_bytes_of(device_);
}

void DeviceMemoryUse::look(const measure::MemoryLedger& ledger, std::optional<std::uint64_t> told_bytes) {
  if (is_cpu(device_)) return;
  if (device_.is_observed()) {
    if (told_bytes) used_bytes_ = static_cast<std::int64_t>(*told_bytes);
    return;
  }
  used_bytes_ = free_at_begin_bytes_ - free_bytes_of(device_);
  accounted_bytes_ = ledger.current().total();
}

void DeviceMemoryUse::tell(record::Memory& memory, const std::optional<record::Telemetry>& telemetry) const {
  const bool is_shared = telemetry && telemetry->foreign_processes.value_or(0) > 0;
  if (!used_bytes_ || (is_shared && !device_.is_observed())) return;
  constexpr double mib = 1048576.0;
  memory.device_used_mib = static_cast<double>(*used_bytes_) / mib;
  if (device_.is_observed()) return;  // of other processes there is no account that could explain it
  memory.unexplained_mib = static_cast<double>(*used_bytes_ - accounted_bytes_) / mib;
}

}  // namespace assay::host::worker
