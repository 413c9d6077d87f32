#include "launch/log_tail.hpp"

#include <algorithm>
#include <fstream>

namespace assay::host::launch {
namespace {

constexpr std::uint64_t window_bytes = 64 * 1024;
constexpr std::size_t line_bytes_max = 1000;

// Length of the valid UTF-8 sequence at the front of `s`, 0 when there is none.
std::size_t sequence_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto follows = [&](std::size_t count) {
    if (s.size() <= count) return false;
    for (std::size_t i = 1; i <= count; ++i)
      if ((byte(i) & 0xC0) != 0x80) return false;
    return true;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!follows(2)) return 0;
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!follows(3)) return 0;
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F; }

}  // namespace

std::string printable_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    // U+0080 to U+009F are control characters too, and some terminals obey them.
    const bool c1 = length == 2 && bytes[0] == '\xC2' && static_cast<unsigned char>(bytes[1]) < 0xA0;
    if (length == 0 || c1 || (length == 1 && is_control(static_cast<unsigned char>(bytes[0]))))
      out += '?';
    else
      out += bytes.substr(0, length);
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t line_count,
                                    std::uint64_t begin_offset) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto end = static_cast<std::uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
  if (end <= begin_offset) return {};
  const std::uint64_t begin = std::max(begin_offset, end > window_bytes ? end - window_bytes : 0);
  std::string bytes(end - begin, '\0');
  in.seekg(static_cast<std::streamoff>(begin));
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (!bytes.empty() && bytes.back() == '\n') bytes.pop_back();

  std::vector<std::string> lines;
  std::string_view rest = bytes;
  while (lines.size() < line_count) {
    const std::size_t newline = rest.rfind('\n');
    std::string_view line = newline == std::string_view::npos ? rest : rest.substr(newline + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(printable_utf8(line.substr(0, line_bytes_max)));
    if (newline == std::string_view::npos) break;
    rest = rest.substr(0, newline);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace assay::host::launch
