#include "report/page.hpp"

#include "common/sha256.hpp"
#include "record/json.hpp"
#include "report/page_parts.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace assay::host::report {
namespace {

int digit_of(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

std::string base64(const std::string& hex) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  // Three hexadecimal digits are two of base 64. One that is left over, as of a hash of 32 bytes, is one.
  for (std::size_t i = 0; i < hex.size(); i += 3) {
    int bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits * 16 + (i + k < hex.size() ? digit_of(hex[i + k]) : 0);
    out += alphabet[static_cast<std::size_t>(bits / 64)];
    if (i + 1 < hex.size()) out += alphabet[static_cast<std::size_t>(bits % 64)];
  }
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// The page's own code, in one scope.
std::string own_script() {
  std::string script = "(() => {\n\"use strict\";\n";
  for (const std::string_view part : page_scripts()) script += part;
  return script + "})();\n";
}

// Puts `value` where `mark` stands in the template, once.
void fill(std::string& text, std::string_view mark, const std::string& value) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw std::logic_error(fmt::format("the template of the page has no {}", mark));
  text.replace(at, mark.size(), value);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

std::string script_safe_json(const Json& data) {
  const std::string json = record::json_text(data);
  std::string out;
  out.reserve(json.size());
  // These stand within strings alone, where JSON has another spelling for them.
  for (const char c : json) switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  return out;
}

std::string source_hash(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return fmt::format("'sha256-{}'", base64(hash.hex()));
}

std::string page_text(const Json& data) {
  const std::string library(plot_library()), own = own_script(), style(page_style());
  std::string page(page_template());
  // From the end to the beginning, so that no mark is looked for in what was filled in: it may hold anything.
  const std::size_t title_at = page.find("{{title}}"), data_at = page.find("{{data}}");
  if (title_at == std::string::npos || data_at == std::string::npos || title_at > data_at)
    throw std::logic_error("the template of the page has its marks in another order than page.cpp expects");
  std::string head = page.substr(0, data_at), tail = page.substr(data_at);
  fill(tail, "{{script}}", own);
  fill(tail, "{{library}}", library);
  fill(tail, "{{licence}}", std::string(plot_library_licence()));
  fill(tail, "{{data}}", script_safe_json(data));
  fill(head, "{{style}}", style);
  // Nothing may be loaded, and nothing may run but these two scripts, whatever a text of a record contains. A picture
  // is drawn once more from its own text.
  fill(head, "{{policy}}",
       fmt::format("default-src 'none'; script-src {} {}; style-src {}; base-uri 'none'; form-action 'none'{}",
                   source_hash(library), source_hash(own), source_hash(style),
                   data.contains("picture") ? "; img-src data:" : ""));
  fill(head, "{{title}}", html_escaped(data.value("title", "assay")));
  return std::string(page_mark) + head + tail;
}

}  // namespace assay::host::report
