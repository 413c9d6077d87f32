// Peaks that makers state: the most operations and bytes in a second, dense, at the highest clock.
#pragma once
#include "record/case_record.hpp"

#include <optional>
#include <string_view>

namespace assay::host::record {

// The peak of one device, by the driver's full name for it: a part of a GPU (MIG) is another device. `arithmetic` as in
// a record's `work` ("bf16"); "" for the bytes alone. Nothing for a device that is not in the table.
std::optional<Peak> stated_peak(std::string_view device_name, std::string_view arithmetic);

}  // namespace assay::host::record
