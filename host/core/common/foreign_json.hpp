// JSON that comes from files and other programs, which may hold anything.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace assay::host {

// Objects and lists within each other. What walks a JSON value does so by recursion: a text that is nested 100,000 deep
// would end the process.
constexpr int deepest_json = 256;
bool is_nested_deeper(std::string_view json, int levels = deepest_json);

// Discarded where the text is no JSON, or nested deeper than `deepest_json`.
template <class Json = nlohmann::ordered_json>
Json json_or_discarded(std::string_view text) {
  if (is_nested_deeper(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace assay::host
