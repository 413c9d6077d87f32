#include "report/picture.hpp"

#include "common/files.hpp"
#include "report/browser.hpp"
#include "report/page.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> all_plots{"comparison", "history", "steps",    "distribution", "phases",
                                                     "memory",     "scaling", "roofline", "telemetry",    "ranks"};

// The text of the element that the page leaves for whoever drew it, "" where there is none.
std::string left_in(const std::string& document, std::string_view id) {
  const std::string begin = fmt::format("<pre id=\"{}\">", id);
  const std::size_t at = document.find(begin);
  if (at == std::string::npos) return "";
  const std::size_t from = at + begin.size(), end = document.find("</pre>", from);
  return end == std::string::npos ? "" : document.substr(from, end - from);
}

std::string bytes_of(std::string_view base64) {
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : base64) {
    const unsigned digit = c >= 'A' && c <= 'Z'   ? static_cast<unsigned>(c - 'A')
                           : c >= 'a' && c <= 'z' ? static_cast<unsigned>(c - 'a' + 26)
                           : c >= '0' && c <= '9' ? static_cast<unsigned>(c - '0' + 52)
                           : c == '+'             ? 62u
                           : c == '/'             ? 63u
                                                  : 64u;
    if (digit > 63) continue;
    bits = (bits << 6 | digit) & 0xFFFFFF;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

// A folder of this process beside the picture, gone with this object.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& target) {
    std::string name = fs::absolute(target).string() + ".part-XXXXXX";
    if (!::mkdtemp(name.data())) throw_storage_error("make the folder", name, errno);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

std::span<const std::string_view> plot_names() { return all_plots; }

std::string picture_of(const Json& data, PictureFormat format, const fs::path& target) {
  const auto browser = find_browser();
  if (!browser)
    throw PictureError(
        "a plot needs Chromium (chromium, chromium-browser or google-chrome) in PATH; install the package chromium "
        "(Ubuntu: snap install chromium), or make a page with --format html");
  const ScratchFolder scratch(target);
  Json asked = data;
  asked["picture"] = format == PictureFormat::svg ? "svg" : "png";
  const fs::path page = scratch.path() / "page.html";
  write_file_atomically(page, page_text(asked));
  const BrowserOutput output = document_of(*browser, page, scratch.path());
  if (const std::string refusal = left_in(output.document, "refusal"); !refusal.empty())
    throw PictureError(bytes_of(refusal));
  const std::string drawn = bytes_of(left_in(output.document, "picture"));
  if (drawn.empty())
    throw PictureError(fmt::format("{} has not drawn the plot ({}); the last it said: {}", browser->string(),
                                   output.how_it_ended, output.last_words));
  return format == PictureFormat::svg ? std::string(svg_mark) + drawn : drawn;
}

}  // namespace assay::host::report
