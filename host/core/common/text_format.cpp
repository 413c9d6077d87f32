#include "common/text_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace assay::host {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_of_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Decoded {
  std::uint32_t code_point = 0xfffd;  // what stands for a byte that is no UTF-8
  std::size_t bytes = 1;
};

Decoded decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first >= 0xf8 || at + length > text.size()) return {};
  std::uint32_t code_point = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    code_point = code_point << 6 | (byte(at + i) & 0x3fu);
  }
  return {code_point, length};
}

struct WidthRange {
  std::uint32_t first, last;
};

template <std::size_t N>
bool contains(const std::array<WidthRange, N>& ranges, std::uint32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code_point](const WidthRange& r) { return code_point >= r.first && code_point <= r.last; });
}

// The blocks that names and units meet in practice, not the whole of Unicode's tables.
constexpr std::array<WidthRange, 6> kNoWidth{
    {{0x0300, 0x036f}, {0x1ab0, 0x1aff}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}}};
constexpr std::array<WidthRange, 8> kDoubleWidth{{{0x1100, 0x115f},
                                                  {0x2e80, 0x303e},
                                                  {0x3041, 0xa4cf},
                                                  {0xac00, 0xd7a3},
                                                  {0xf900, 0xfaff},
                                                  {0xff00, 0xff60},
                                                  {0x1f300, 0x1faff},
                                                  {0x20000, 0x3fffd}}};

std::size_t width_of(std::uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || contains(kNoWidth, code_point)) return 0;
  return contains(kDoubleWidth, code_point) ? 2 : 1;
}

}  // namespace

std::string group_thousands(std::string_view number) {
  std::size_t begin = 0;
  if (!number.empty() && (number[0] == '-' || number[0] == '+')) begin = 1;
  std::size_t end = begin;
  while (end < number.size() && number[end] >= '0' && number[end] <= '9') ++end;
  std::string result(number.substr(0, begin));
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && (end - i) % 3 == 0) result += ',';
    result += number[i];
  }
  result += number.substr(end);
  return result;
}

std::string number_list(std::span<const std::int64_t> ascending) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ascending.size();) {
    std::size_t last = first;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    // Two neighbours read better as "1, 2" than as "1 to 2".
    if (last == first + 1) last = first;
    parts.push_back(first == last ? fmt::format("{}", ascending[first])
                                  : fmt::format("{} to {}", ascending[first], ascending[last]));
    first = last + 1;
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

namespace {

struct NotedFigure {
  double size = 0;   // without its sign: a drift of -11% is worse than one of 3%
  std::string text;  // with its sign and its percent sign
};

// The note with '#' for each figure; the figures themselves go to `figures`.
std::string parted(std::string_view note, std::vector<NotedFigure>& figures) {
  std::string text;
  for (std::size_t i = 0; i < note.size();) {
    const bool is_signed = (note[i] == '-' || note[i] == '+') && i > 0 && note[i - 1] == ' ' && i + 1 < note.size() &&
                           is_digit(note[i + 1]);
    const bool in_word = i > 0 && (is_of_word(note[i - 1]) || is_digit(note[i - 1]));
    if (!is_signed && (!is_digit(note[i]) || in_word || text.ends_with("rank "))) {
      text += note[i++];
      continue;
    }
    const std::size_t begin = i;
    std::string digits;
    for (i += is_signed ? 1 : 0;
         i < note.size() &&
         (is_digit(note[i]) || ((note[i] == '.' || note[i] == ',') && i + 1 < note.size() && is_digit(note[i + 1])));
         ++i)
      if (note[i] != ',') digits += note[i];
    const std::size_t end = i < note.size() && note[i] == '%' ? i + 1 : i;
    figures.push_back({std::strtod(digits.c_str(), nullptr), std::string(note.substr(begin, end - begin))});
    text += '#';
  }
  return text;
}

std::vector<NotedFigure> figures_in(std::string_view note) {
  std::vector<NotedFigure> figures;
  parted(note, figures);
  return figures;
}

}  // namespace

std::string without_figures(std::string_view note) {
  std::vector<NotedFigure> ignored;
  return parted(note, ignored);
}

bool has_higher_figures(std::string_view note, std::string_view than) {
  const std::vector<NotedFigure> figures = figures_in(note), others = figures_in(than);
  return std::lexicographical_compare(others.begin(), others.end(), figures.begin(), figures.end(),
                                      [](const NotedFigure& a, const NotedFigure& b) { return a.size < b.size; });
}

std::string range_of_figures(std::string_view lowest, std::string_view highest) {
  const std::vector<NotedFigure> low = figures_in(lowest), high = figures_in(highest);
  for (std::size_t i = 0; i < std::min(low.size(), high.size()); ++i)
    if (low[i].text != high[i].text) return fmt::format("{} to {}", low[i].text, high[i].text);
  return "";
}

std::string significant_digits(double number, int digits) {
  if (number == 0) return "0";
  const std::string scientific = fmt::format("{:.{}e}", number, digits - 1);
  const double size = std::abs(number);
  if (!std::isfinite(number) || size < 1e-4 || size >= 1e15) return scientific;
  // The exponent after rounding, so that 9.99996 becomes 10.00 and not 10.000.
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  return group_thousands(fmt::format("{:.{}f}", number, std::max(0, digits - 1 - exponent)));
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded d = decode(text, at);
    width += width_of(d.code_point);
    at += d.bytes;
  }
  return width;
}

std::string fit_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t used = 0, at = 0;
  while (at < text.size()) {
    const Decoded d = decode(text, at);
    if (used + width_of(d.code_point) > width - 1) break;
    used += width_of(d.code_point);
    at += d.bytes;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string one_line(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded d = decode(text, at);
    const bool control = d.code_point < 0x20 || (d.code_point >= 0x7f && d.code_point < 0xa0);
    if (control)
      result += ' ';
    else
      result += d.code_point == 0xfffd ? "\xef\xbf\xbd" : text.substr(at, d.bytes);
    at += d.bytes;
  }
  return result;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string hanging(std::string_view head, std::string_view text, std::size_t indent, std::size_t width) {
  constexpr std::size_t fewest = 20;
  if (width == 0) return pad_to(head, indent, Align::left) + std::string(text) + "\n";
  const std::vector<std::string> lines = wrapped(text, std::max(width, indent + fewest) - indent);
  if (lines.empty()) return std::string(head) + "\n";
  std::string all;
  if (display_width(head) > indent) {
    all = std::string(head.substr(0, head.find_last_not_of(' ') + 1)) + "\n";
    head = "";
  }
  for (const std::string& line : lines) {
    all += pad_to(head, indent, Align::left) + line + "\n";
    head = "";
  }
  return all;
}

std::string refilled(std::string_view text, std::size_t width) {
  std::string all, paragraph;
  const auto end_paragraph = [&] {
    for (const std::string& line : wrapped(paragraph, width)) all += line + "\n";
    paragraph.clear();
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      all += std::string(line) + "\n";
    } else {
      paragraph += std::string(paragraph.empty() ? "" : " ") + std::string(line);
    }
    begin = end + 1;
  }
  end_paragraph();
  if (!all.empty()) all.pop_back();
  return all;
}

std::string pad_to(std::string_view text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string blank(used < width ? width - used : 0, ' ');
  return align == Align::left ? std::string(text) + blank : blank + std::string(text);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::vector<std::string> comma_separated(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      if (end > begin) parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  return parts;
}

}  // namespace assay::host
