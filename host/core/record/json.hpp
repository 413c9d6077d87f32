// The spelling of records as JSON, in both directions: the one place that knows their keys.
#pragma once
#include "record/case_record.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace assay::host::record {

nlohmann::ordered_json to_json(const CaseRecord& record);
nlohmann::ordered_json to_json(const CaseResult& result);
nlohmann::ordered_json to_json(const Device& device);

// Fields of another type than expected count as absent, and unknown ones are left out. Nothing when the JSON is no
// object with a status.
std::optional<CaseRecord> record_from_json(const nlohmann::ordered_json& json);
std::optional<CaseResult> result_from_json(const nlohmann::ordered_json& json);
Device device_from_json(const nlohmann::ordered_json& json);

// One line of cases.jsonl, without its end. Bytes of a plugin's text that are no UTF-8 are replaced.
std::string to_line(const CaseRecord& record);
std::optional<CaseRecord> record_from_line(std::string_view line);

// Text that is valid JSON, with the bytes that are no UTF-8 replaced. `indent` below 0: in one line.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

// A value as JSON spells it (1.0, true), and a text as it is.
std::string plain_text(const Value& value);

// What is known of a device, by field name, without what is absent.
Named<std::string> items_of(const Device& device);

}  // namespace assay::host::record
