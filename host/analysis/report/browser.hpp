// A browser without a window, which draws a page and reports what became of it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace assay::host::report {

// Chromium or Chrome in PATH.
std::optional<std::filesystem::path> find_browser();

struct BrowserOutput {
  std::string document;      // as it is once the page is loaded; "" where the browser returned nothing
  std::string how_it_ended;  // "exit code 0"
  std::string last_words;    // the last line of what it said besides
};

// Loads the page, for a minute at most. Everything that the browser writes goes to `scratch`. It reaches no network:
// the page asks for nothing.
BrowserOutput document_of(const std::filesystem::path& browser, const std::filesystem::path& page,
                          const std::filesystem::path& scratch);

}  // namespace assay::host::report
