#include "plan/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/memory_kinds.hpp"
#include "common/text_format.hpp"
#include "results/case_text.hpp"

namespace assay::host::plan {
namespace {

using json = nlohmann::ordered_json;
using record::Cell;

constexpr std::size_t most_reasons = 10;

std::string fits_text(const PlannedCase& c) {
  switch (c.walk.state) {
    case WalkState::refused: return "refused";
    case WalkState::unsupported: return "unsupported";
    case WalkState::too_large: return "no";
    case WalkState::not_known: return "not known";
    case WalkState::walked: break;
  }
  return c.fits == Fits::not_known ? "not known" : c.fits == Fits::yes ? "yes" : "no";
}

std::vector<std::string> axes_of(const CasesPlan& plan) {
  std::vector<std::string> axes;
  for (const PlannedCase& c : plan.cases)
    for (const auto& [axis, value] : c.request.values.axes)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  return axes;
}

bool holds(const CasesPlan& plan, std::size_t kind) {
  return std::any_of(plan.cases.begin(), plan.cases.end(),
                     [&](const PlannedCase& c) { return c.walk.peak.bytes[kind] > 0; });
}

Cell optional_number(double number, bool is_there) { return is_there ? record::number_cell(number) : Cell{}; }

Cell largest_cell(const PlannedCase& c) {
  if (!c.largest || !c.largest->value) return {};
  if (!c.largest->is_bound) return record::count_cell(*c.largest->value);
  return record::text_cell(fmt::format("{} (its range ends)", *c.largest->value));
}

std::string name_of_case(const PlannedCase& c) {
  const std::string label = results::case_label(c.request.values.axes, c.request.values.repeat);
  return fmt::format("case {}{}", c.request.values.index + 1, label.empty() ? "" : fmt::format(" ({})", label));
}

}  // namespace

const char* name_of(WalkState state) {
  switch (state) {
    case WalkState::walked: return "planned";
    case WalkState::refused: return "refused";
    case WalkState::unsupported: return "unsupported";
    case WalkState::too_large: return "too large";
    case WalkState::not_known: return "not known";
  }
  return "?";
}

results::Table table_of(const CasesPlan& plan, const std::string& largest) {
  results::Table table;
  std::vector<std::string> axes = axes_of(plan);
  // The number that each case is planned on stands for an axis of ranks, which may say "all".
  const bool has_ranks =
      std::erase(axes, record::ranks_axis) > 0 ||
      std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& c) { return c.request.ranks > 1; });
  const bool has_expected =
      std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& c) { return c.expected.has_value(); });
  table.columns.emplace_back("case");
  table.columns.insert(table.columns.end(), axes.begin(), axes.end());
  if (has_ranks) table.columns.emplace_back("ranks");
  for (const char* name : {"fits", "process peak MiB", "at least ms", "by"}) table.columns.emplace_back(name);
  if (has_expected) table.columns.emplace_back("expected ms");
  if (!largest.empty()) table.columns.push_back(fmt::format("largest {}", largest));
  // Once for all rows: looking through all cases for each of them would take time by the square of their number.
  std::vector<std::size_t> kinds;
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (holds(plan, k)) kinds.push_back(k);
  for (const std::size_t k : kinds) table.columns.push_back(fmt::format("{} MiB", memory_kind_name(k)));
  for (const PlannedCase& c : plan.cases) {
    const bool is_there = c.walk.state == WalkState::walked;
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back(record::input_cell(c.request.values.index + 1));
    for (const std::string& axis : axes) {
      const Value* const value = record::find(c.request.values.axes, axis);
      row.push_back(value ? record::input_cell(*value) : Cell{});
    }
    if (has_ranks) row.push_back(record::count_cell(c.request.ranks));
    row.push_back(record::text_cell(fits_text(c)));
    row.push_back(optional_number(c.peak_mib, is_there));
    row.push_back(optional_number(c.least_step_s * 1e3, c.least_step_s > 0));
    row.push_back(record::text_cell(c.bound));
    if (has_expected) row.push_back(c.expected ? record::number_cell(c.expected->step_s * 1e3) : Cell{});
    if (!largest.empty()) row.push_back(largest_cell(c));
    for (const std::size_t k : kinds)
      row.push_back(optional_number(static_cast<double>(c.walk.peak.bytes[k]) / mib, is_there));
  }
  return table;
}

namespace {

double least_beside(const CasesPlan& plan) {
  double least = 0;
  for (const PlannedCase& c : plan.cases)
    if (c.beside_mib > 0) least = least == 0 ? c.beside_mib : std::min(least, c.beside_mib);
  return least;
}

// Equal reasons once, each with the cases that have it.
std::string reasons_of(const CasesPlan& plan) {
  std::vector<std::pair<std::string, std::vector<const PlannedCase*>>> reasons;
  const auto add = [&](const PlannedCase& c, std::string text) {
    auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == text; });
    if (known == reasons.end()) known = reasons.insert(reasons.end(), {std::move(text), {}});
    known->second.push_back(&c);
  };
  for (const PlannedCase& c : plan.cases) {
    if (c.walk.state != WalkState::walked)
      add(c, fmt::format("{}: {}", name_of(c.walk.state), one_line(c.walk.reason)));
    if (c.walk.state == WalkState::walked && c.largest && !c.largest->value)
      add(c, fmt::format("no largest value: {}", one_line(c.largest->why_none)));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(reasons.size(), most_reasons); ++i) {
    const auto& [reason, cases] = reasons[i];
    text += fmt::format("{}{}: {}\n", name_of_case(*cases.front()),
                        cases.size() > 1 ? fmt::format(" and {} more", cases.size() - 1) : "", reason);
  }
  if (reasons.size() > most_reasons)
    text += fmt::format("and {} more reasons, which --json has\n", reasons.size() - most_reasons);
  return text;
}

const char* name_of(WhyNoTime why) {
  switch (why) {
    case WhyNoTime::nothing_alike: return "nothing alike";
    case WhyNoTime::no_peaks: return "no peaks";
    case WhyNoTime::not_planned: return "not planned";
    case WhyNoTime::too_far: return "too far";
  }
  return "?";
}

// Set-up and verification often take longer than the steps.
std::string words_beside_steps(const CasesPlan& plan) {
  double all_s = 0, beside_s = 0, verify_s = 0;
  for (const PlannedCase& c : plan.cases)
    if (c.expected_s) all_s += *c.expected_s, beside_s += c.expected->other_s, verify_s += c.expected->verify_s;
  if (!(all_s > 0)) return "";
  return fmt::format("of the expected time {:.0f}% is beside the steps, {:.0f}% in verification\n",
                     100 * beside_s / all_s, 100 * std::min(verify_s, beside_s) / all_s);
}

std::string node_hours_text(const CasesPlan& plan) {
  if (plan.node_hours == 0) return "node-hours not known";
  return fmt::format("{} {:.2g} node-hours", plan.node_hours_are_least ? "at least" : "about", plan.node_hours);
}

// "case 3", "cases 1 to 3 and 7": a prefix of a sentence.
std::string names_of(const std::vector<const PlannedCase*>& cases) {
  std::vector<std::int64_t> numbers;
  for (const PlannedCase* c : cases) numbers.push_back(c->request.values.index + 1);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());  // repeats of one case
  return (numbers.size() == 1 ? "case " : "cases ") + number_list(numbers);
}

std::string sentence_on(WhyNoTime why, const std::vector<const PlannedCase*>& cases,
                        const experiment::DeviceDescription& device) {
  const std::string none = fmt::format("{} {} no expected time: ", names_of(cases), cases.size() == 1 ? "has" : "have");
  switch (why) {
    case WhyNoTime::nothing_alike: return none + "no earlier case has the same choices, switches and ranks\n";
    case WhyNoTime::not_planned:
      return none + "the earlier cases with the same choices, switches and ranks cannot be planned themselves\n";
    case WhyNoTime::no_peaks:
      return fmt::format(
          "{}{} has no peaks for the operations of the earlier cases, so their times cannot be scaled. Write measured "
          "ones with `assay describe-device --device {} --from RUN --output FILE`, then plan with --device-file FILE\n",
          none, device.file, device.kind);
    case WhyNoTime::too_far: break;
  }
  double farthest = 1;
  for (const PlannedCase* c : cases) farthest = std::max(farthest, c->beyond);
  return fmt::format(
      "{}every earlier case with the same choices, switches and ranks is over {:.0f} times larger or smaller (up to "
      "{}). Add a run of a nearer size with --from\n",
      none, most_beyond, group_thousands(fmt::format("{:.0f}", farthest)));
}

std::string words_on_expected(const CasesPlan& plan) {
  std::size_t expected = 0, fewest = 0;
  double largest_error = 0, farthest = 1;
  std::vector<const PlannedCase*> beyond;
  std::map<WhyNoTime, std::vector<const PlannedCase*>> without;
  for (const PlannedCase& c : plan.cases) {
    if (c.why_no_time) without[*c.why_no_time].push_back(&c);
    if (!c.expected) continue;
    fewest = expected == 0 ? c.expected->cases : std::min(fewest, c.expected->cases);
    ++expected;
    largest_error = std::max(largest_error, c.expected->largest_error);
    farthest = std::max(farthest, c.expected->beyond);
    if (c.expected->beyond > 1.5) beyond.push_back(&c);
  }
  std::string text;
  if (expected > 0 && fewest == 1)
    text = "expected times: some stand on one earlier case, so their error is not known\n";
  else if (expected > 0)
    text = fmt::format(
        "expected times: each stands on {} or more earlier cases, from whose times the fit is off by up to {:.1f}%\n",
        fewest, largest_error * 100);
  if (!beyond.empty())
    text += fmt::format(
        "{} {} larger or smaller than all earlier cases that the expected time stands on, by a factor of up to "
        "{:.1f}\n",
        names_of(beyond), beyond.size() == 1 ? "is" : "are", farthest);
  for (const auto& [why, cases] : without) text += sentence_on(why, cases, plan.device);
  return text;
}

}  // namespace

std::string below_table(const CasesPlan& plan) {
  const experiment::DeviceDescription& device = plan.device;
  std::string text = fmt::format("device: {}, {} MiB ({})\n", device.name,
                                 group_thousands(fmt::format("{:.0f}", device.memory_total_mib)), device.file);
  const auto too_large =
      std::count_if(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& c) { return c.fits == Fits::no; });
  if (too_large > 0) text += fmt::format("{} of {} cases do not fit\n", too_large, plan.cases.size());
  text += reasons_of(plan) + words_on_expected(plan);
  const auto planned = std::count_if(plan.cases.begin(), plan.cases.end(),
                                     [](const PlannedCase& c) { return c.walk.state == WalkState::walked; });
  if (planned > 0)
    text +=
        fmt::format("all cases: {}, about {:.0f} MiB of disk while they run\n", node_hours_text(plan), plan.disk_mib);
  text += words_beside_steps(plan);
  const auto with_beside =
      std::find_if(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& c) { return c.beside_mib > 0; });
  if (with_beside != plan.cases.end())
    text += fmt::format("process: each holds {:.0f} MiB or more for the {} and the libraries\n", least_beside(plan),
                        device.kind == "cpu" ? "program" : "driver");
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  return text;
}

json to_json(const CasesPlan& plan, const std::string& experiment, const std::string& largest) {
  json cases = json::array();
  for (const PlannedCase& c : plan.cases) {
    json axes = json::object();
    for (const auto& [name, value] : c.request.values.axes)
      std::visit([&, key = name](const auto& v) { axes[key] = v; }, value);
    json one{{"index", c.request.values.index},
             {"axes", std::move(axes)},
             {"ranks", c.request.ranks},
             {"state", name_of(c.walk.state)}};
    if (c.walk.state != WalkState::walked) {
      one["reason"] = c.walk.reason;
      if (c.walk.state == WalkState::too_large) one["fits"] = false;
      cases.push_back(std::move(one));
      continue;
    }
    json peak = json::object(), at_step = json::object(), operations = json::object();
    for (std::size_t k = 0; k < memory_kind_count; ++k) {
      if (c.walk.peak.bytes[k] == 0) continue;
      peak[memory_kind_name(k)] = c.walk.peak.bytes[k];
      at_step[memory_kind_name(k)] = c.walk.at_step.bytes[k];
    }
    for (std::size_t i = 0; i < operation_kinds.size(); ++i)
      if (const OperationSum& sum = c.walk.operations[i]; sum.count > 0)
        operations[operation_kinds[i]] = {
            {"count", sum.count}, {"flops", sum.flops}, {"bytes", sum.bytes}, {"least_ms", sum.least_s * 1e3}};
    one["rank"] = c.walk.rank;
    one["told_by_plugin"] = c.walk.is_declared;
    one["memory"] = {{"peak_bytes", std::move(peak)},         {"at_step_bytes", std::move(at_step)},
                     {"peak_total_bytes", c.walk.peak_total}, {"beside_mib", c.beside_mib},
                     {"process_mib", c.process_mib},          {"process_peak_mib", c.peak_mib}};
    one["fits"] = c.fits == Fits::not_known ? json() : json(c.fits == Fits::yes);
    one["operations"] = std::move(operations);
    one["step"] = {{"least_ms", c.least_step_s > 0 ? json(c.least_step_s * 1e3) : json()}, {"bound", c.bound}};
    if (c.expected)
      one["step"]["expected"] = {{"ms", c.expected->step_s * 1e3},
                                 {"fitted_cases", c.expected->cases},
                                 {"largest_error", c.expected->largest_error},
                                 {"beyond", c.expected->beyond}};
    if (c.why_no_time) one["step"]["why_not_expected"] = name_of(*c.why_no_time);
    if (c.why_no_time == WhyNoTime::too_far) one["step"]["beyond"] = c.beyond;
    if (c.expected_s) one["expected_case_s"] = *c.expected_s;
    if (c.expected_s)
      one["expected_beside_steps_s"] = c.expected->other_s, one["expected_verification_s"] = c.expected->verify_s;
    if (c.largest)
      one["largest"] = {{"param", largest},
                        {"value", c.largest->value ? json(*c.largest->value) : json()},
                        {"is_bound_of_parameter", c.largest->is_bound},
                        {"why_none", c.largest->why_none}};
    cases.push_back(std::move(one));
  }
  const experiment::DeviceDescription& device = plan.device;
  return {{"experiment", experiment},
          {"device",
           {{"kind", device.kind},
            {"name", device.name},
            {"memory_total_mib", device.memory_total_mib},
            {"file", device.file}}},
          {"cases", std::move(cases)},
          {"node_hours", plan.node_hours},
          {"node_hours_are_least", plan.node_hours_are_least},
          {"disk_mib", plan.disk_mib},
          {"libraries", "not asked"},
          {"notes", plan.notes}};
}

}  // namespace assay::host::plan
