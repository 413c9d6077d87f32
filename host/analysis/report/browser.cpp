#include "report/browser.hpp"

#include "common/child.hpp"
#include "common/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view browser_names[] = {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"};
constexpr std::chrono::milliseconds browser_deadline{60'000};

// In the child: what the descriptor stands for from here on is the file.
void redirect(int fd, const fs::path& file) {
  const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (to >= 0) dup2(to, fd);
}

std::string last_line_of(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "nothing";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// A path may hold what means something else in an address: '#', '?', '%'.
std::string address_of(const fs::path& file) {
  constexpr std::string_view plain = "/._-~";
  std::string address = "file://";
  for (const char c : file.string()) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          plain.find(c) != std::string_view::npos;
    address += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return address;
}

}  // namespace

std::optional<fs::path> find_browser() {
  const char* path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (const std::string_view name : browser_names)
    for (std::size_t begin = 0; begin <= folders.size();) {
      const std::size_t end = std::min(folders.find(':', begin), folders.size());
      const fs::path file = fs::path(folders.substr(begin, end - begin)) / name;
      if (end > begin && access(file.c_str(), X_OK) == 0) return file;
      begin = end + 1;
    }
  return std::nullopt;
}

BrowserOutput document_of(const fs::path& browser, const fs::path& page, const fs::path& scratch) {
  const fs::path document = scratch / "document.html", words = scratch / "browser.log";
  std::vector<std::string> arguments{browser.string(), "--headless", "--disable-gpu", "--disable-dev-shm-usage",
                                     "--disable-extensions", "--disable-background-networking", "--disable-sync",
                                     "--no-first-run", "--no-default-browser-check", "--hide-scrollbars",
                                     fmt::format("--user-data-dir={}", (scratch / "profile").string()),
                                     // What the page waits for, a picture to be drawn, comes before this has passed.
                                     "--virtual-time-budget=10000", "--dump-dom"};
  // Chromium does not start with its sandbox for root, as whom containers run. The page is ours, and its texts are
  // text.
  if (geteuid() == 0) arguments.emplace_back("--no-sandbox");
  arguments.push_back(address_of(page));
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const ChildEnd end = run_in_child(
      [&](const Send&) {
        redirect(STDOUT_FILENO, document);
        redirect(STDERR_FILENO, words);
        execv(browser.c_str(), pointers.data());
      },
      {.deadline = browser_deadline});
  BrowserOutput output;
  output.how_it_ended = end.is_overdue ? "it did not end within a minute" : end.how();
  std::error_code ignored;
  if (fs::exists(document, ignored)) output.document = read_file(document);
  output.last_words = fs::exists(words, ignored) ? last_line_of(read_file(words)) : "nothing";
  return output;
}

}  // namespace assay::host::report
