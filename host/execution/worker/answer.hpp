// What a worker process answers to the host that has started it: the result of a case and then how it was taken down,
// or what a device is. Each is one line of JSON on the pipe of events.
#pragma once
#include "record/case_record.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::worker {

struct CaseAnswer {
  record::CaseResult result;
  bool of_another_rank = false;  // a failure that may be another rank's doing
  bool asked_to_end = false;     // by a SIGTERM that was not the host's
};

// What there is to add once nothing of the case is left. The answer comes before: whatever happens in between, what was
// measured is with the host.
struct CaseTeardown {
  std::vector<std::string> notes;
  double case_s = 0;              // with the taking down
  record::Number destroy_s = {};  // of it
};
void add_teardown(record::CaseResult& result, CaseTeardown teardown);

// What asking for a [run] device has shown.
struct FoundDevice {
  record::Status status = record::Status::failed;
  std::string reason;  // where the status is not ok
  std::string cause;   // of it the backend's own text, "<why>; <remedy>"; "" where the host found the failure
  record::Device device;
  std::int32_t count = 1;  // of the devices of that kind
  std::string note;        // for the user: why "auto" is not what may have been expected
  // What opening the device has loaded, beside its backend: the build id of each, by name (loaded_libraries.hpp).
  record::Named<std::string> libraries = {};
  bool is_usable() const { return status == record::Status::ok; }
};

std::string to_event(const CaseAnswer& answer);
std::string to_event(const CaseTeardown& teardown);
std::string to_event(const FoundDevice& answer);
// Nothing when the line is no such answer.
std::optional<CaseAnswer> case_answer_from(std::string_view event_line);
std::optional<CaseTeardown> teardown_from(std::string_view event_line);
std::optional<FoundDevice> found_device_from(std::string_view event_line);

}  // namespace assay::host::worker
