// The code of JSON's classes is compiled once, in json_instances.cpp, and not by each file that uses it, where it was
// up to two thirds of what the compiler wrote (g++ at -O0 with sanitizers). Part of the precompiled headers of the host
// and of the tests; nothing includes it by itself, and without it (ASSAY_PCH=OFF) every file compiles what it uses.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay::host::json_input {
using Text = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using Characters = nlohmann::detail::iterator_input_adapter<const char*>;  // of a std::string_view
}  // namespace assay::host::json_input

// `keyword`: extern, or nothing where they are compiled. Qualified names, so that it stands outside any namespace.
#define ASSAY_JSON_PARSER(keyword, Json, Input)                                    \
  keyword template class nlohmann::detail::lexer<Json, Input>;                     \
  keyword template class nlohmann::detail::parser<Json, Input>;                    \
  keyword template bool nlohmann::detail::parser<Json, Input>::sax_parse_internal( \
      nlohmann::detail::json_sax_dom_parser<Json>*);                               \
  keyword template bool nlohmann::detail::parser<Json, Input>::sax_parse_internal( \
      nlohmann::detail::json_sax_dom_callback_parser<Json>*);
#define ASSAY_JSON_CLASSES(keyword, Json)                                      \
  keyword template class nlohmann::detail::serializer<Json>;                   \
  keyword template class nlohmann::detail::iter_impl<const Json>;              \
  keyword template class nlohmann::detail::json_sax_dom_parser<Json>;          \
  keyword template class nlohmann::detail::json_sax_dom_callback_parser<Json>; \
  keyword template class std::vector<Json>;                                    \
  ASSAY_JSON_PARSER(keyword, Json, assay::host::json_input::Text)              \
  ASSAY_JSON_PARSER(keyword, Json, assay::host::json_input::Characters)
#define ASSAY_JSON_INSTANCES(keyword)                                 \
  keyword template class nlohmann::basic_json<>;                      \
  keyword template class nlohmann::basic_json<nlohmann::ordered_map>; \
  ASSAY_JSON_CLASSES(keyword, nlohmann::json)                         \
  ASSAY_JSON_CLASSES(keyword, nlohmann::ordered_json)

ASSAY_JSON_INSTANCES(extern)
