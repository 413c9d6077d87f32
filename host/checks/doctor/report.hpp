// The output of `assay doctor`.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/palette.hpp"
#include "doctor/findings.hpp"

namespace assay::host::doctor {

// For people: the machine, its devices, what assay would use, and what was found, in lines of at most `width` columns.
std::string report_text(const Facts& facts, const std::vector<Finding>& findings, std::size_t width_columns,
                        const Palette& palette = {});
// For programs: docs/doctor.md, "JSON".
nlohmann::ordered_json report_json(const Facts& facts, const std::vector<Finding>& findings);

}  // namespace assay::host::doctor
