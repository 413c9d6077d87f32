// What a worker process answers to the host that has started it: the result of a case, or what a device is. One line of
// JSON on the pipe of events.
#pragma once
#include "record/case_record.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace assay::host::worker {

struct CaseAnswer {
  record::CaseResult result;
  bool of_another_rank = false;  // a failure that may be another rank's doing
};

// What asking for a [run] device has shown.
struct FoundDevice {
  record::Status status = record::Status::failed;
  std::string reason;  // where the status is not ok
  record::Device device;
  std::int32_t count = 1;  // of the devices of that kind
  std::string note;        // for the user: why "auto" is not what may have been expected
  bool is_usable() const { return status == record::Status::ok; }
};

std::string to_event(const CaseAnswer& answer);
std::string to_event(const FoundDevice& answer);
// Nothing when the line is no such answer.
std::optional<CaseAnswer> case_answer_from(std::string_view event_line);
std::optional<FoundDevice> found_device_from(std::string_view event_line);

}  // namespace assay::host::worker
