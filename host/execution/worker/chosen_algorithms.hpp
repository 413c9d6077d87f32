// What the device's libraries have chosen to run, read through the device table for the record.
#pragma once
#include "plugin/device_library.hpp"
#include "record/case_record.hpp"

namespace assay::host::worker {

inline constexpr std::size_t most_algorithms = 200;  // of a record

// Nothing for a backend that does not report them. Of more than most_algorithms the first ones; a note says how many
// others there are. A backend that fails to report them is a note as well: the figures are none the worse.
void tell_algorithms(const plugin::OpenDevice& device, record::CaseResult& result);

}  // namespace assay::host::worker
