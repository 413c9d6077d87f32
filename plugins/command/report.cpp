#include "report.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace command {
namespace {

[[noreturn]] void refuse(const std::string& line, const std::string& expected) {
  throw assay::Error(ASSAY_INTERNAL, "the program wrote \"" + shown(line) + "\" to ASSAY_FD; expected " + expected);
}

// Without a stream, whose making takes longer than all else that is done with a line of a step.
std::vector<std::string> words_in(const std::string& line) {
  constexpr const char* blanks = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (std::size_t begin = line.find_first_not_of(blanks); begin != std::string::npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

double number_in(const std::string& word, const std::string& line) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0') refuse(line, "a number where \"" + shown(word) + "\" is");
  return value;
}

Report figure_in(Report::Kind kind, const std::vector<std::string>& words, const std::string& line) {
  if (words.size() < 3 || words.size() > 5)
    refuse(line, words.front() + " NAME VALUE [UNIT or -] [lower or higher, which is better]");
  Report report{.kind = kind, .name = words[1], .value = number_in(words[2], line)};
  if (words.size() > 3 && words[3] != "-") report.unit = words[3];
  if (words.size() > 4 && words[4] != "lower" && words[4] != "higher") refuse(line, "lower or higher as its last word");
  if (words.size() > 4) report.better = words[4] == "lower" ? ASSAY_LOWER_IS_BETTER : ASSAY_HIGHER_IS_BETTER;
  return report;
}

Report failure_in(const std::vector<std::string>& words, const std::string& line) {
  static constexpr std::array<std::pair<const char*, assay_status>, 4> statuses{{{"oom", ASSAY_OUT_OF_MEMORY},
                                                                                 {"unsupported", ASSAY_UNSUPPORTED},
                                                                                 {"wrong_result", ASSAY_WRONG_RESULT},
                                                                                 {"failed", ASSAY_INTERNAL}}};
  for (const auto& [word, status] : statuses)
    if (words.size() > 2 && words[1] == word) {
      const std::string text = line.substr(line.find(word) + words[1].size() + 1);
      return {.kind = Report::Kind::fail, .status = status, .text = text};
    }
  refuse(line, "fail oom|unsupported|wrong_result|failed and why");
}

}  // namespace

std::string shown(const std::string& line) {
  constexpr std::size_t most = 80;
  std::string text;
  for (const char c : line.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return line.size() > most ? text + "..." : text;
}

Report report_in(const std::string& line) {
  if (line == "step") return {.kind = Report::Kind::step};  // as nearly all say it, within a time that is measured
  const std::vector<std::string> words = words_in(line);
  const std::string verb = words.empty() ? "" : words.front();
  if (verb == "step" && words.size() == 1) return {.kind = Report::Kind::step};
  if (verb == "begin" && words.size() == 2) return {.kind = Report::Kind::begin, .name = words[1]};
  if (verb == "end" && words.size() == 2) return {.kind = Report::Kind::end, .name = words[1]};
  if (verb == "metric") return figure_in(Report::Kind::metric, words, line);
  if (verb == "result") return figure_in(Report::Kind::result, words, line);
  if (verb == "fail") return failure_in(words, line);
  if (line == greeting) return {.kind = Report::Kind::greeting};
  refuse(line, "step, begin NAME, end NAME, metric NAME VALUE, result NAME VALUE or fail STATUS WHY (docs/command.md)");
}

}  // namespace command
