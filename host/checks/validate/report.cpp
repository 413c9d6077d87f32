#include "validate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/text_format.hpp"
#include "common/utf8.hpp"

namespace assay::host::validate {
namespace {

using Json = nlohmann::ordered_json;

// A plugin's text may be anything; a report is UTF-8 of lines.
std::string clean(std::string_view text) {
  if (is_utf8(text)) return one_line(text);
  std::string printable;
  for (const char c : text) printable += c >= ' ' && c <= '~' ? c : '?';
  return printable;
}

const char* word_of(const CheckRow& row, const Answer& answer) {
  switch (answer.state) {
    case State::passed: return "ok";
    case State::not_asked: return "not asked";
    case State::found: break;
  }
  return row.severity == Severity::error ? "error" : "warning";
}

// The words of a text in lines of at most `width` columns; a longer word stands alone.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (display_width(line) + 1 + display_width(word) <= width)
      line += fmt::format(" {}", word);
    else
      lines.emplace_back(word);
    while (display_width(lines.back()) > width) {  // a path, say: cut where the line ends
      std::size_t cut = std::min(width, lines.back().size() - 1);
      while (cut > 1 && (static_cast<unsigned char>(lines.back()[cut]) & 0xC0U) == 0x80U) --cut;  // within a character
      std::string rest = lines.back().substr(cut);
      lines.back().resize(cut);
      lines.push_back(std::move(rest));
    }
  }
  return lines;
}

template <class Use>
void for_levels(int first, int last, Use&& use) {
  for (const CheckRow& row : all_checks())
    if (row.level >= first && row.level <= last) use(row);
}

// "  error      run.works            it does not"
std::string table_row(std::string_view word, std::string_view name, std::string_view says, std::size_t width) {
  constexpr std::size_t indent = 2 + 9 + 2 + 19 + 2;
  std::string text;
  for (const std::string& line : wrapped(says, width - indent))
    text += text.empty() ? fmt::format("  {:<9}  {:<19}  {}\n", word, name, line)
                         : fmt::format("{:{}}{}\n", "", indent, line);
  return text;
}

std::string part_table(const Answers& answers, int first, int last, bool is_whole, std::size_t width) {
  std::string text;
  std::vector<std::pair<std::string, std::vector<const char*>>> left_out;  // by their reasons
  for_levels(first, last, [&](const CheckRow& row) {
    const Answer& answer = answers.of(row.check);
    std::string says = answer.state == State::passed ? row.sentence : clean(answer.text);
    if (answer.state == State::found) says += fmt::format("; expected: {}; remedy: {}", row.sentence, row.remedy);
    if (is_whole || answer.state == State::found) {
      text += table_row(word_of(row, answer), row.name, says, width);
    } else if (answer.state == State::not_asked) {
      auto known = std::find_if(left_out.begin(), left_out.end(), [&](const auto& each) { return each.first == says; });
      if (known == left_out.end()) known = left_out.insert(left_out.end(), {says, {}});
      known->second.push_back(row.name);
    }
  });
  for (const auto& [why, names] : left_out)
    text +=
        table_row("not asked", names.size() == 1 ? names.front() : fmt::format("{} checks", names.size()), why, width);
  return text;
}

Json part_json(const Answers& answers, int first, int last) {
  Json checks = Json::array();
  for_levels(first, last, [&](const CheckRow& row) {
    const Answer& answer = answers.of(row.check);
    Json one{{"check", row.name},
             {"level", row.level},
             {"answer", word_of(row, answer)},
             {"severity", row.severity == Severity::error ? "error" : "warning"},
             {"sentence", row.sentence}};
    if (answer.state != State::passed) one.emplace("text", clean(answer.text));
    if (answer.state == State::found) one.emplace("remedy", row.remedy);
    checks.push_back(std::move(one));
  });
  return checks;
}

std::size_t count_of(const Answers& answers, int level, State state, const Severity* severity = nullptr) {
  std::size_t count = 0;
  for_levels(1, level, [&](const CheckRow& row) {
    if (answers.of(row.check).state == state && (!severity || row.severity == *severity)) ++count;
  });
  return count;
}

}  // namespace

void Answers::pass(Check check) {
  if (at(check).state != State::found) at(check) = {State::passed, ""};
}
void Answers::find(Check check, std::string text, assay_status status) {
  if (at(check).state != State::found) at(check) = {State::found, std::move(text), status};
}
void Answers::leave_out(Check check, std::string why) {
  if (at(check).state == State::not_asked && at(check).text.empty()) at(check).text = std::move(why);
}
bool Answers::has_findings() const {
  return std::any_of(answers_.begin(), answers_.end(), [](const Answer& a) { return a.state == State::found; });
}

void Asker::ask(Check check) const { send_(Json{{"ask", row_of(check).name}}.dump() + "\n"); }
void Asker::at(const std::string& place) const { send_(Json{{"at", clean(place)}}.dump() + "\n"); }
void Asker::find(Check check, const std::string& text, assay_status status) const {
  send_(Json{{"found", row_of(check).name}, {"text", clean(text)}, {"status", status}}.dump() + "\n");
}
void Asker::leave_out(Check check, const std::string& why) const {
  send_(Json{{"left_out", row_of(check).name}, {"text", clean(why)}}.dump() + "\n");
}
void Asker::send_tables(const std::string& line) const { send_(Json{{"tables", line}}.dump() + "\n"); }

Progress take_in(std::string_view text, Answers& answers) {
  Progress progress;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    const Json event = Json::parse(text.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (!event.is_object()) continue;
    const auto text_of = [&](const char* key) {
      return event.contains(key) && event[key].is_string() ? event[key].get<std::string>() : std::string();
    };
    const auto is_number = [&](const char* key) { return event.contains(key) && event[key].is_number_integer(); };
    if (const auto asked = check_named(text_of("ask"))) {
      progress.has_asked = true, progress.last = *asked, progress.place.clear();
      answers.pass(*asked);
    }
    if (event.contains("at")) progress.place = text_of("at");
    if (const auto found = check_named(text_of("found")))
      answers.find(*found, text_of("text"), is_number("status") ? event["status"].get<assay_status>() : ASSAY_OK);
    if (const auto left_out = check_named(text_of("left_out"))) answers.leave_out(*left_out, text_of("text"));
    if (event.contains("tables")) progress.tables = text_of("tables");
  }
  return progress;
}

std::size_t Report::count(Severity severity) const {
  std::size_t sum = count_of(plugin, 1, State::found, &severity);
  for (const WorkloadReport& workload : workloads) sum += count_of(workload.answers, level, State::found, &severity);
  return sum;
}

std::string to_table(const Report& report, bool is_whole, std::size_t width) {
  const auto text_of_count = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string text;
  for (const std::string& line : wrapped(clean(report.file), width)) text += line + "\n";
  text += part_table(report.plugin, 1, 1, is_whole, width);
  std::size_t passed = count_of(report.plugin, 1, State::passed);
  for (const WorkloadReport& workload : report.workloads) {
    if (report.level < 2) break;
    text += fmt::format("workload {}{}\n", workload.workload,
                        workload.device.empty() ? "" : fmt::format(" on {}", workload.device));
    text += part_table(workload.answers, 2, report.level, is_whole, width);
    passed += count_of(workload.answers, report.level, State::passed);
  }
  const std::size_t errors = report.count(Severity::error), warnings = report.count(Severity::warning);
  return text +
         fmt::format("{} passed, {}, {}\n", passed, text_of_count(errors, "error"), text_of_count(warnings, "warning"));
}

Json to_json(const Report& report) {
  Json workloads = Json::array();
  for (const WorkloadReport& workload : report.workloads)
    workloads.push_back({{"workload", workload.workload},
                         {"device", workload.device},
                         {"checks", part_json(workload.answers, 2, report.level)}});
  return {{"file", report.file},
          {"level", report.level},
          {"errors", report.count(Severity::error)},
          {"warnings", report.count(Severity::warning)},
          {"checks", part_json(report.plugin, 1, 1)},
          {"workloads", std::move(workloads)}};
}

}  // namespace assay::host::validate
