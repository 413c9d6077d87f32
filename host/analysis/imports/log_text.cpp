#include "imports/log_text.hpp"

#include <algorithm>
#include <cctype>

#include "imports/formats.hpp"

namespace assay::host::imports {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view rest_after(std::string_view text, std::size_t begin) {
  return text.substr(std::min(begin, text.size()));
}

// "2025-03-14T08:00:01.123Z ", "2025-03-14 08:00:01,123 ": its length with the blank, or 0.
std::size_t time_length(std::string_view line) {
  constexpr std::string_view pattern = "dddd-dd-dd?dd:dd:dd";
  if (line.size() < pattern.size()) return 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char p = pattern[i];
    if (p == 'd' ? !is_digit(line[i]) : p == '?' ? line[i] != 'T' && line[i] != ' ' : line[i] != p) return 0;
  }
  std::size_t end = pattern.size();
  while (end < line.size() && (is_digit(line[end]) || std::string_view(".,Z+:-").find(line[end]) != line.npos)) ++end;
  return end < line.size() && line[end] != ' ' ? 0 : std::min(end + 1, line.size());
}

bool take_time(LogLine& line) {
  const std::size_t length = time_length(line.text);
  if (length == 0) return false;
  line.time = line.text.substr(0, length);
  while (line.time.ends_with(' ')) line.time.remove_suffix(1);
  line.text.remove_prefix(length);
  // Container runtimes name the stream, and whether the line is whole.
  for (const std::string_view stream : {"stdout F ", "stderr F "})
    if (line.text.starts_with(stream)) line.text.remove_prefix(stream.size());
  return true;
}

// "[1,0]<stdout>:", "[prterun-a-1@1,0]<stderr>: ", also behind a date as mpirun --timestamp-output writes it.
bool take_stream_tag(LogLine& line) {
  constexpr std::size_t longest = 120;
  const std::string_view begin = line.text.substr(0, longest);
  for (const std::string_view tag : {"]<stdout>:", "]<stderr>:"}) {
    const std::size_t end = begin.find(tag);
    const std::size_t open = end == begin.npos ? begin.npos : begin.rfind('[', end);
    if (open == begin.npos) continue;
    line.source = begin.substr(open + 1, end - open - 1);
    if (const std::size_t at = line.source.rfind('@'); at != line.source.npos) line.source.remove_prefix(at + 1);
    line.text.remove_prefix(end + tag.size());
    return true;
  }
  return false;
}

// "[0] ", "[pod/worker-0/main] ". NCCL's own lines have such a number behind their host.
bool take_bracket(LogLine& line) {
  if (!line.text.starts_with('[')) return false;
  const std::size_t end = line.text.find("] ");
  if (end == line.text.npos || end < 2) return false;
  const std::string_view name = line.text.substr(1, end - 1);
  if (!std::all_of(name.begin(), name.end(), is_digit) && !name.starts_with("pod/")) return false;
  line.source = name;
  line.text.remove_prefix(end + 2);
  return true;
}

// "0: ", " 12: ".
bool take_task_number(LogLine& line) {
  std::size_t at = line.text.find_first_not_of(' ');
  const std::size_t begin = at;
  while (at < line.text.size() && is_digit(line.text[at])) ++at;
  if (at == line.text.npos || at == begin || at >= line.text.size() || line.text[at] != ':') return false;
  if (at + 1 < line.text.size() && line.text[at + 1] != ' ') return false;
  line.source = line.text.substr(begin, at - begin);
  line.text = rest_after(line.text, at + 2);
  return true;
}

// "worker-0  | ".
bool take_container(LogLine& line) {
  const std::size_t bar = line.text.find(" | ");
  if (bar == line.text.npos) return false;
  std::string_view name = line.text.substr(0, bar);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (name.empty() || name.find_first_of(" #") != name.npos) return false;
  line.source = name;
  line.text.remove_prefix(bar + 3);
  return true;
}

void append_utf8(std::uint32_t letter, std::string& text) {
  const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) return put(0xC0 | letter >> 6), put(0x80 | (letter & 0x3F));
  if (letter < 0x10000) return put(0xE0 | letter >> 12), put(0x80 | (letter >> 6 & 0x3F)), put(0x80 | (letter & 0x3F));
  put(0xF0 | letter >> 18), put(0x80 | (letter >> 12 & 0x3F)), put(0x80 | (letter >> 6 & 0x3F)),
      put(0x80 | (letter & 0x3F));
}

std::string from_utf16(std::string_view bytes, bool is_little) {
  if (bytes.size() % 2)
    throw ImportError("it is UTF-16 (as PowerShell writes), and half of its last letter is missing");
  const auto unit = [&](std::size_t i) -> std::uint32_t {
    const auto low = static_cast<unsigned char>(bytes[i + (is_little ? 0 : 1)]);
    const auto high = static_cast<unsigned char>(bytes[i + (is_little ? 1 : 0)]);
    return std::uint32_t{high} << 8 | low;
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::uint32_t letter = unit(i);
    if (letter >= 0xD800 && letter < 0xE000) {
      const std::uint32_t second = i + 3 < bytes.size() ? unit(i + 2) : 0;
      if (letter >= 0xDC00 || second < 0xDC00 || second >= 0xE000)
        throw ImportError("it is UTF-16 (as PowerShell writes), and one of its letters is torn");
      letter = 0x10000 + ((letter - 0xD800) << 10) + (second - 0xDC00);
      i += 2;
    }
    append_utf8(letter, text);
  }
  return text;
}

}  // namespace

LogLine without_prefixes(std::string_view line) {
  LogLine result{.source = {}, .time = {}, .text = line};
  if (result.text.ends_with('\r')) result.text.remove_suffix(1);
  // A pod's log of an mpirun has several of them: one time and two sources; the inner source counts.
  bool has_time = false;
  int sources = 0;
  const auto take_source = [&] {
    return take_stream_tag(result) || take_bracket(result) || take_task_number(result) || take_container(result);
  };
  for (;;) {
    if (!has_time && (has_time = take_time(result))) continue;
    if (sources == 2 || !take_source()) break;
    ++sources;
  }
  return result;
}

std::vector<LogLine> log_lines(std::string_view text) {
  std::vector<LogLine> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(without_prefixes(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

void split_words(std::string_view line, std::vector<std::string_view>& words) {
  words.clear();
  constexpr std::string_view blanks = " \t\v\f\r";
  for (std::size_t begin = line.find_first_not_of(blanks); begin != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
}

std::string as_utf8(std::string bytes) {
  const std::string_view all = bytes;
  if (all.starts_with("\xEF\xBB\xBF")) return bytes.substr(3);
  if (all.starts_with("\xFF\xFE")) return from_utf16(all.substr(2), true);
  if (all.starts_with("\xFE\xFF")) return from_utf16(all.substr(2), false);
  return bytes;
}

}  // namespace assay::host::imports
