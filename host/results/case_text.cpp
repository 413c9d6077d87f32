#include "results/case_text.hpp"

#include "results/columns.hpp"
#include "results/text_format.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host {
namespace {

// A field of the record itself, which a parameter of the same name does not hide.
std::string field_text(const Record& record, const char* key) {
  const auto field = record.find(key);
  return field == record.end() ? std::string() : display_text(Cell{*field, true});
}

std::string text_at(const Record& record, const char* column) { return display_text(cell_of(record, column)); }

// "case 3 (size=xl)"
std::string case_name(const Record& record) {
  const Cell index = cell_of(record, "index");
  std::string name = index.value.is_number_integer() ? fmt::format("case {}", index.value.get<std::int64_t>() + 1)
                                                     : std::string("case");
  if (const std::string label = case_label(record); !label.empty()) name += fmt::format(" ({})", label);
  return name;
}

}  // namespace

std::string case_label(const std::vector<std::pair<std::string, Value>>& axes) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : axes) texts.push_back(fmt::format("{}={}", key, one_line(to_text(value))));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string case_label(const Record& record) {
  std::vector<std::string> texts;
  if (const auto axes = record.find("axes"); axes != record.end() && axes->is_object())
    for (const auto& item : axes->items())
      texts.push_back(fmt::format("{}={}", item.key(), display_text(Cell{item.value(), true})));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string case_summary(const Record& record) {
  const std::string status = text_at(record, "status");
  if (status != "ok") {
    const std::string reason = text_at(record, "reason");
    return reason.empty() ? status : fmt::format("{}: {}", status, reason);
  }
  std::string summary = status;
  if (const std::string mean_ms = text_at(record, "step.mean_ms"); !mean_ms.empty())
    summary += fmt::format(" step {} ms", mean_ms);
  if (const Cell cv = cell_of(record, "step.cv_percent"); cv.is_number())
    summary += fmt::format(" ± {:.1f}%", cv.value.get<double>());
  return summary;
}

std::vector<std::string> problem_lines(const std::vector<Record>& records, const std::vector<std::string>& allow) {
  std::vector<std::string> lines;
  for (const Record& record : records) {
    const std::string status = text_at(record, "status");
    if (status == "ok") continue;
    const bool expected = std::find(allow.begin(), allow.end(), status) != allow.end();
    std::vector<std::string> where;
    if (const std::string stage = field_text(record, "stage"); !stage.empty() && stage != "done")
      where.push_back(stage);
    for (const char* place : {"phase", "rank"})
      if (const std::string text = field_text(record, place); !text.empty())
        where.push_back(fmt::format("{} {}", place, text));
    const std::string reason = text_at(record, "reason");
    lines.push_back(fmt::format("{}: {}{}: {}", case_name(record), status, expected ? " (expected)" : "",
                                reason.empty() ? "no reason was given" : reason));
    if (!where.empty()) lines.back() += fmt::format(" [{}]", fmt::join(where, ", "));
  }
  return lines;
}

std::vector<std::string> note_lines(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records)
    if (const auto notes = record.find("notes"); notes != record.end() && notes->is_array())
      for (const Record& note : *notes)
        if (note.is_string())
          lines.push_back(fmt::format("{}: note: {}", case_name(record), one_line(note.get<std::string>())));
  return lines;
}

}  // namespace assay::host
