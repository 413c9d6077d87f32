// What a case takes of its device's memory by the device's own account, beside the account by kind.
#pragma once
#include <cstdint>
#include <optional>

#include "measure/memory_ledger.hpp"
#include "plugin/device_library.hpp"
#include "record/case_record.hpp"

namespace assay::host::worker {

// Of a device that this process works on: how much less of it is free. Of one that it observes: what the driver reports
// of the processes that it has started, since nothing else says whose memory it is.
class DeviceMemoryUse {
 public:
  // Right after the device was opened: what is gone then is the driver's, and others'.
  explicit DeviceMemoryUse(const plugin::OpenDevice& device);
  // Between steps, with the device idle. `told_bytes`: what the driver says of this process and those it has started.
  void look(const measure::MemoryLedger& ledger, std::optional<std::uint64_t> told_bytes);
  // Nothing on a CPU, whose memory everything uses, nor where another process uses the device and it is not known whose
  // memory it is.
  void tell(record::Memory& memory, const std::optional<record::Telemetry>& telemetry) const;

 private:
  const plugin::OpenDevice& device_;
  std::int64_t free_at_begin_bytes_ = 0;
  std::optional<std::int64_t> used_bytes_;
  std::int64_t accounted_bytes_ = 0;
};

}  // namespace assay::host::worker
