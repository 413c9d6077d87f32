#include "ab/report.hpp"

#include "compare/ends.hpp"
#include "results/terminal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
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
  const std::string interval = compare::ends_text({entry.low, entry.high});
  if (interval.empty())
    return fmt::format("ratio {:.4f}, no interval{}", *entry.ratio,
                       runs < static_cast<std::size_t>(fewest_runs)
                           ? fmt::format(": fewer than {} runs a side do not show how much runs differ", fewest_runs)
                           : "");
  if (interval == "exact") return fmt::format("ratio {:.4f}, exact", *entry.ratio);
  const auto end = [](const std::optional<double>& at) { return at ? fmt::format("{:.4f}", *at) : "?"; };
  return fmt::format("ratio {:.4f} [{}, {}]{}", *entry.ratio, end(entry.low), end(entry.high),
                     entry.low && entry.high ? "" : ", open where others used the machine");
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

// "0:42", "12:03", "1:02:03"
std::string clock_of(double seconds) {
  return results::clock_text(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
}

// The text says how many rounds are left at most, and how long they take by the rounds so far. A round that is under
// way when the time is over is finished.
std::string rest_text(const Round& round, const SessionPlan& plan) {
  if (round.runs <= 0 || round.runs >= plan.looks.max_runs || round.seconds >= plan.max_time_s) return "";
  const double of_round = round.seconds / static_cast<double>(round.runs);
  const std::int64_t in_time =
      of_round > 0 ? static_cast<std::int64_t>(std::ceil(std::min(1e6, (plan.max_time_s - round.seconds) / of_round)))
                   : plan.looks.max_runs;
  const std::int64_t rounds = std::min(plan.looks.max_runs - round.runs, in_time);
  return fmt::format("; at most {} round{} more, {}", rounds, rounds == 1 ? "" : "s",
                     clock_of(of_round * static_cast<double>(rounds)));
}

}  // namespace

std::string limits_text(const SessionPlan& plan) {
  return fmt::format("At most {} rounds, each with a run of A and one of B; no round begins after {} (--max-time)\n",
                     plan.looks.max_runs, clock_of(plan.max_time_s));
}

std::string pair_line(const Round& round, const SessionPlan& plan) {
  const compare::ComparedMetric& metric = round.comparison.metrics.at(0);
  std::string line = fmt::format("Round {}: ", round.runs);
  if (metric.cases.size() == 1) {
    line += fmt::format("{} {}", metric.name, ratio_text(metric.cases[0]));
  } else {
    const Judgement judgement = judge(round.comparison, plan.looks.min_runs);
    line += fmt::format("{} of {} cases decided", judgement.cases - judgement.open, judgement.cases);
    if (judgement.worse > 0) line += fmt::format(", {} worse", judgement.worse);
  }
  if (!round.is_look) line += " (interim, not tested)";
  return line + rest_text(round, plan);
}

std::string compare_command(const SessionNames& names, double confidence) {
  std::string command = "assay compare --group";
  for (const auto& folder : names.folders) command += fmt::format(" {}", quoted(folder.string()));
  if (!names.across.empty())
    command += fmt::format(" --across {}", quoted(fmt::format("{}", fmt::join(names.across, ","))));
  if (names.metric != "step") command += fmt::format(" --metric {}", quoted(names.metric));
  if (names.test.statistic != compare::TestOptions().statistic)
    command += fmt::format(" --statistic {}", names.statistic);
  if (names.test.states != compare::TestOptions().states)
    command += fmt::format(" --states {:g}", names.test.states * 100);
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
        "A and B are the same (--a-a), so faster or slower would be a false verdict. The interval shows what the "
        "machine can resolve\n";
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
