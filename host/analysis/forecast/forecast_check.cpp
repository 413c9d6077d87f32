#include "forecast/forecast_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/table_page.hpp"

namespace assay::host::forecast {
namespace {

// Of the steps that are allowed, those on fewer ranks.
std::set<int> fewer_than(int ranks, const StepFamily& family, const std::set<int>& allowed) {
  std::set<int> fewer;
  for (const MeasuredStep& step : family.steps)
    if (step.ranks < ranks && (allowed.empty() || allowed.contains(step.ranks))) fewer.insert(step.ranks);
  return fewer;
}

}  // namespace

double Check::worst_percent() const {
  double worst = 0;
  for (const CheckedForecast& row : rows) worst = std::max(worst, std::abs(row.off_percent()));
  return worst;
}

Check check_of(const std::vector<ObservedCase>& cases, const std::vector<StepFamily>& families,
               const std::set<int>& allowed) {
  Check check;
  for (const StepFamily& family : families)
    for (const MeasuredStep& step : family.steps) {
      const std::set<int> fewer = fewer_than(step.ranks, family, allowed);
      // One rank does not show how collectives run, so that the fewest of several are not checked.
      if (step.ranks < 3 || fewer.empty() || *fewer.rbegin() < 2) continue;
      std::set<int> counted;
      for (int n = 2; n < step.ranks; ++n)
        if (allowed.empty() || allowed.contains(n)) counted.insert(n);
      const Wires wires = wires_of(cases, families, counted);
      const std::string among =
          allowed.empty() ? fmt::format(" (of those on fewer than {} ranks)", step.ranks) : among_text(allowed);
      const Answer answer = forecast_of(family, {.ranks = {step.ranks}, .allowed = fewer, .among = among}, wires);
      check.left_out.insert(answer.left_out.begin(), answer.left_out.end());
      if (!answer.forecast) continue;
      check.rows.push_back({family.label, fewer, fmt::format("{}", fmt::join(family.doubts, ", ")),
                            answer.forecast->assumptions.wires_of, answer.forecast->forecasts.front()});
    }
  return check;
}

std::string text_of(const Check& check, std::size_t width_columns) {
  using record::number_cell;
  using record::text_cell;
  results::Table table;
  table.columns = {"case", "ranks", "from", "predicted_ms", "measured_ms", "off_%"};
  std::set<std::string> notes;
  for (const CheckedForecast& row : check.rows) {
    const StepForecast& o = row.forecast;
    table.rows.push_back({text_cell(row.label), record::count_cell(o.ranks),
                          text_cell(fmt::format("{}", fmt::join(row.from, ", "))), number_cell(o.step_s * ms_of_a_s),
                          number_cell(*o.measured_s * ms_of_a_s), number_cell(row.off_percent())});
    if (!row.doubts.empty())
      notes.insert(fmt::format("note: the validity of records of {} is {}\n", row.label, row.doubts));
    if (!row.wires_of.empty()) notes.insert(fmt::format("note: {} takes messages of {}\n", row.label, row.wires_of));
  }
  std::string text = results::table_on_terminal(table, width_columns);
  for (const std::string& note : notes) text += note;
  return text + fmt::format("{} forecast{}, the worst is off by {:.1f}%\n", check.rows.size(),
                            check.rows.size() == 1 ? "" : "s", check.worst_percent());
}

std::string json_of(const Check& check) {
  using Json = nlohmann::ordered_json;
  Json all{{"checked", Json::array()}, {"worst_percent", check.worst_percent()}};
  for (const CheckedForecast& row : check.rows)
    all["checked"].push_back({{"case", row.label},
                              {"ranks", row.forecast.ranks},
                              {"from_ranks", row.from},
                              {"doubts", row.doubts},
                              {"predicted_ms", row.forecast.step_s * ms_of_a_s},
                              {"measured_ms", *row.forecast.measured_s * ms_of_a_s},
                              {"off_percent", row.off_percent()}});
  return all.dump(2) + "\n";
}

}  // namespace assay::host::forecast
