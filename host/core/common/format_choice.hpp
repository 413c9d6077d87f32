// A table of formats that a command knows, by name and summary: what imports and exports list and look up alike.
#pragma once
#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

namespace assay::host {

// "  nvbench          the file of --json" for each, a line each.
template <class Format>
std::string format_list(std::span<const Format> formats) {
  std::string text;
  for (const Format& format : formats) text += fmt::format("  {:<16} {}\n", format.name, format.summary);
  if (!text.empty()) text.pop_back();
  return text;
}

template <class Format>
std::vector<std::string> format_names(std::span<const Format> formats) {
  std::vector<std::string> names;
  for (const Format& format : formats) names.emplace_back(format.name);
  return names;
}

// Null where none has the name.
template <class Format>
const Format* format_named(std::span<const Format> formats, const std::string& name) {
  for (const Format& format : formats)
    if (name == format.name) return &format;
  return nullptr;
}

}  // namespace assay::host
