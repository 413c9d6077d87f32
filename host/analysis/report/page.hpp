// From data to one HTML file that needs nothing else.
#pragma once
#include "report/rounded.hpp"

#include <string>
#include <string_view>

namespace assay::host::report {

// The first bytes of each report, by which a later one knows that it may replace the file.
inline constexpr std::string_view page_mark = "<!doctype html>\n<!-- made by assay report -->\n";

std::string page_text(const Json& data);

// `text` within an element or an attribute's quotes.
std::string html_escaped(std::string_view text);
// JSON that can stand in a <script> element: no text of it can end the element, or begin a comment there.
std::string script_safe_json(const Json& data);
// What a Content-Security-Policy names an inline script or style by: "'sha256-...'".
std::string source_hash(std::string_view text);

}  // namespace assay::host::report
