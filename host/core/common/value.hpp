// A parameter's or setting's value, as it stands in an experiment file, a record and a plugin's table.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>

namespace assay::host {

using Value = std::variant<bool, std::int64_t, double, std::string>;

// As in a table or a key: true, 512, 0.0001, small. A double keeps the shortest text that reads back to it.
std::string to_text(const Value& value);
nlohmann::json to_json(const Value& value);
// Numbers, bools and strings only; throws std::invalid_argument for anything else.
Value value_from_json(const nlohmann::json& json);

}  // namespace assay::host
