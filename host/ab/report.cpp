#include "ab/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace assay::host::ab {
namespace {

using compare::Entry;
using Json = nlohmann::ordered_json;

const char* word_of(End end) {
  switch (end) {
    case End::clear: return "clear";
    case End::runs_spent: return "runs spent";
    case End::time_spent: return "time spent";
    case End::interrupted: return "interrupted";
    case End::failed: return "failed";
  }
  return "";
}

std::string ratio_text(const compare::ComparedCase& c) {
  const Entry& entry = c.entries.at(1);
  const std::size_t runs = std::min(c.entries.at(0).runs, entry.runs);
  if (!entry.ratio) return "no ratio";
  if (!entry.low || !entry.high)
    return fmt::format("ratio {:.4f}, no interval{}", *entry.ratio,
                       runs < static_cast<std::size_t>(fewest_runs)
                           ? fmt::format(": fewer than {} runs a side do not tell how much runs differ", fewest_runs)
                           : "");
  if (!std::isfinite(*entry.high) || !(*entry.low > 0))
    return fmt::format("ratio {:.4f}, no interval: others used the machine", *entry.ratio);
  return fmt::format("ratio {:.4f} [{:.4f}, {:.4f}]", *entry.ratio, *entry.low, *entry.high);
}

// In the words of a shell.
std::string quoted(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=:+@%") ==
      std::string::npos)
    return text;
  std::string inner;
  for (const char c : text) inner += c == '\'' ? "'\\''" : std::string(1, c);
  return fmt::format("'{}'", inner);
}

std::vector<std::string> case_lines(const compare::Comparison& comparison) {
  std::vector<std::string> lines;
  for (const compare::ComparedMetric& metric : comparison.metrics)
    for (const compare::ComparedCase& c : metric.cases) {
      const Entry& b = c.entries.at(1);
      const std::string what = b.kind == Entry::Kind::compared ? fmt::format("{}, {}", ratio_text(c), b.verdict)
                               : b.reason.empty()              ? "not compared"
                                                               : b.reason;
      lines.push_back(fmt::format("{}: {} {}", compare::case_name(comparison, c), metric.name, what));
      for (const std::string& note : b.notes) lines.push_back("  note: " + note);
    }
  return lines;
}

Json cases_json(const compare::Comparison& comparison) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json cases = Json::array();
  for (const compare::ComparedMetric& metric : comparison.metrics)
    for (const compare::ComparedCase& c : metric.cases) {
      const Entry &a = c.entries.at(0), &b = c.entries.at(1);
      Json one{{"case", compare::case_name(comparison, c)}, {"metric", metric.name}, {"verdict", b.verdict}};
      if (b.kind != Entry::Kind::compared) one["reason"] = b.reason;
      one.update(Json{{"ratio", number(b.ratio)},
                      {"low", number(b.low)},
                      {"high", number(b.high)},
                      {"runs", {a.runs, b.runs}},
                      {"notes", b.notes}});
      cases.push_back(std::move(one));
    }
  return cases;
}

}  // namespace

std::string pair_line(const PairTold& told, std::int64_t min_runs) {
  const compare::ComparedMetric& metric = told.comparison.metrics.at(0);
  const std::string head = fmt::format("{0} + {0} runs: ", told.runs);
  const char* look = told.is_look ? "" : "  (not looked at)";
  if (metric.cases.size() == 1) return fmt::format("{}{} {}{}", head, metric.name, ratio_text(metric.cases[0]), look);
  const Judgement judgement = judge(told.comparison, min_runs);
  return fmt::format("{}{} of {} cases have a verdict, {} of them worse{}", head, judgement.cases - judgement.open,
                     judgement.cases, judgement.worse, look);
}

std::string compare_command(const SessionNames& names, double confidence) {
  std::string command = "assay compare --group";
  for (const auto& folder : names.folders) command += fmt::format(" {}", quoted(folder.string()));
  if (!names.across.empty())
    command += fmt::format(" --across {}", quoted(fmt::format("{}", fmt::join(names.across, ","))));
  if (names.metric != "step") command += fmt::format(" --metric {}", quoted(names.metric));
  return command + fmt::format(" --threshold {:g} --confidence {:.8g} --run-to-run {:g}", names.test.threshold * 100,
                               confidence * 100, names.test.run_to_run * 100);
}

std::string result_text(const SessionResult& result, const SessionNames& names) {
  std::string text;
  if (result.comparison)
    for (const std::string& line : case_lines(*result.comparison)) text += line + "\n";
  const char* why = result.end == End::runs_spent   ? " (--max-runs)"
                    : result.end == End::time_spent ? " (--max-time)"
                                                    : "";
  const bool has_verdict = result.end != End::interrupted && result.end != End::failed;
  text += fmt::format("{} + {} runs in {:.0f} s, {}{}; ", result.runs, result.runs, result.seconds, word_of(result.end),
                      why);
  text += has_verdict ? fmt::format("B: {}\n", name_of(result.judgement.verdict)) : "no verdict\n";
  if (names.is_one_thing)
    text +=
        "A and B are one and the same here: this says how much chance alone makes them differ, and nothing of a "
        "change. "
        "Name what is to differ by --a and --b, or give two experiments\n";
  for (std::size_t i = 0; i < names.folders.size(); ++i)
    text += fmt::format("{}: {}\n", i == 0 ? "A" : "B", names.folders[i].string());
  if (result.comparison) text += compare_command(names, result.confidence) + "\n";
  return text;
}

std::string result_json(const SessionResult& result, const SessionNames& names, int exit_code) {
  const bool has_verdict = result.end != End::interrupted && result.end != End::failed;
  Json json{{"event", "ab_finished"},
            {"end", word_of(result.end)},
            {"verdict", has_verdict ? Json(name_of(result.judgement.verdict)) : Json()},
            {"runs", result.runs},
            {"seconds", result.seconds},
            {"confidence", result.confidence},
            {"threshold", names.test.threshold},
            {"is_one_thing", names.is_one_thing},
            {"cases", result.comparison ? cases_json(*result.comparison) : Json::array()},
            {"folders", {names.folders.at(0).string(), names.folders.at(1).string()}},
            {"compare", result.comparison ? Json(compare_command(names, result.confidence)) : Json()},
            {"exit_code", exit_code}};
  if (!result.failure.empty()) json["failure"] = result.failure;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::host::ab
