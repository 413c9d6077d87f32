#include "results/case_text.hpp"

#include "common/text_format.hpp"
#include "record/columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::results {

std::string case_name(const record::CaseRecord& record) {
  std::string name = record.identity.index >= 0 ? fmt::format("case {}", record.identity.index + 1) : "case";
  if (const std::string label = case_label(record.identity.axes, record.identity.repeat); !label.empty())
    name += fmt::format(" ({})", label);
  return name;
}

std::string case_label(const record::Named<Value>& axes, const std::optional<std::int64_t>& repeat) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : axes) texts.push_back(fmt::format("{}={}", one_line(key), one_line(to_text(value))));
  if (repeat) texts.push_back(fmt::format("repeat {}", *repeat));
  return fmt::format("{}", fmt::join(texts, " "));
}

namespace {

// A reason of several lines, as the end of a traceback: "first: | second | third", since blanks alone do not part them.
std::string reason_line(const std::string& reason) {
  constexpr auto fewest_line_ends = 2;
  if (std::count(reason.begin(), reason.end(), '\n') < fewest_line_ends) return one_line(reason);
  std::string line;
  for (std::size_t begin = 0; begin < reason.size();) {
    const std::size_t end = std::min(reason.find('\n', begin), reason.size());
    const std::size_t text = std::min(reason.find_first_not_of(" \t", begin), end);
    if (text < end) line += (line.empty() ? "" : " | ") + one_line(reason.substr(text, end - text));
    begin = end + 1;
  }
  return line;
}

}  // namespace

std::string case_summary(const record::CaseRecord& record) {
  std::string summary = record.result.status_text();
  if (!record.result.is_ok()) {
    const std::string reason = reason_line(record.result.reason);
    return reason.empty() ? summary : fmt::format("{}: {}", summary, reason);
  }
  if (const record::Cell mean_ms = record::cell_of(record, "step.mean_ms"); !mean_ms.empty())
    summary += fmt::format(" step {} ms", record::display_text(mean_ms));
  // One step has no scatter: "cv 0.0%" would say that it is known exactly.
  if (const auto cv_percent = record::cell_of(record, "step.cv_percent").number();
      cv_percent && record::cell_of(record, "step.n").number().value_or(0) > 1)
    summary += fmt::format(", cv {:.1f}%", *cv_percent);
  if (!record.result.verify) return summary;
  const record::VerificationResult& verify = *record.result.verify;
  if (verify.status == record::Verification::partial) summary += ", verified in part";
  if (verify.status == record::Verification::as_case && verify.refers_to)
    summary += fmt::format(", verified as case {}", verify.refers_to->index + 1);
  if (verify.status == record::Verification::by_account) summary += ", verified by its account alone";
  return summary;
}

std::vector<std::string> problem_lines(const std::vector<record::CaseRecord>& records,
                                       const std::vector<std::string>& allow) {
  std::vector<std::string> lines;
  for (const record::CaseRecord& record : records) {
    const record::CaseResult& result = record.result;
    if (result.is_ok()) continue;
    const std::string status = result.status_text();
    const bool expected = std::find(allow.begin(), allow.end(), status) != allow.end();
    std::vector<std::string> where;
    if (result.stage && *result.stage != Stage::done) where.emplace_back(name_of(*result.stage));
    if (!result.phase.empty()) where.push_back(fmt::format("phase {}", one_line(result.phase)));
    if (!result.part.empty()) where.push_back(fmt::format("part {}", one_line(result.part)));
    if (result.rank) where.push_back(fmt::format("rank {}", *result.rank));
    const std::string reason = reason_line(result.reason);
    lines.push_back(fmt::format("{}: {}{}: {}", case_name(record), one_line(status), expected ? " (expected)" : "",
                                reason.empty() ? "no reason was given" : reason));
    if (!where.empty()) lines.back() += fmt::format(" [{}]", fmt::join(where, ", "));
  }
  return lines;
}

}  // namespace assay::host::results
