#include "forecast/family_forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::forecast {
namespace {

bool is_on_cpu(const StepFamily& family) { return family.steps.front().link.library == "gloo"; }

// These settings turn a case of one rank into one of two.
std::string settings_of_two_ranks(const StepFamily& family) {
  const Value* const is_parallel = record::find(family.params, "expert_parallel");
  return std::string("--set run.ranks=2") +
         (is_parallel && *is_parallel == Value(false) ? " --set expert_parallel=true" : "");
}

}  // namespace

std::string among_text(const std::set<int>& allowed) {
  return allowed.empty() ? "" : fmt::format(" (of those on the {} ranks of --from-ranks)", fmt::join(allowed, ", "));
}

std::string command_for(const std::string& what, bool is_cpu) {
  return fmt::format("'assay run configs/{}{}.toml'", what, is_cpu ? "-cpu" : "");
}

Answer forecast_of(const StepFamily& family, const Question& question, const Wires& wires) {
  Answer answer;
  const auto refused = [&](const std::string& why) {
    answer.left_out.push_back(fmt::format("{}: {}", family.label, why));
    return answer;
  };
  FamilyForecast one{.family = &family};
  for (const MeasuredStep& step : family.steps)
    if (question.allowed.empty() || question.allowed.contains(step.ranks)) one.from.insert(step.ranks);
  const int most = *std::max_element(question.ranks.begin(), question.ranks.end());
  if (one.from.empty() || (most > 1 && *one.from.rbegin() < 2))
    return refused(fmt::format(
        "no record on two ranks or more{}, and one rank does not show how its collectives run; {}", question.among,
        question.allowed.empty() ? "run its experiment once more with " + settings_of_two_ranks(family)
                                 : "name numbers of ranks that RUN has, or leave out --from-ranks"));
  std::vector<int> ranks;
  for (const int n : question.ranks) {
    const std::string why = why_impossible(basis_of(family, one.from, n), n);
    if (why.empty())
      ranks.push_back(n);
    else
      (void)refused(why);
  }
  if (ranks.empty()) return answer;
  const Link& link = basis_of(family, one.from, most).link;
  one.wires = nearest(wires, link);
  if (most > 1 && !one.wires)
    return refused(
        fmt::format("no record shows what messages cost on {}{}; expected all_reduce there, on two ranks or "
                    "more, over several sizes: {}{}",
                    link.text(), question.among, command_for("all-reduce", is_on_cpu(family)),
                    link.between_machines ? ", on as many machines" : ""));
  one.assumptions.network = question.network;
  if (one.wires) {
    one.assumptions.wires = one.wires->second;
    if (one.wires->first != link) one.assumptions.wires_of = one.wires->first.text();
  }
  if (const std::string why = contradiction_in(family, one.from, ranks, one.assumptions); !why.empty())
    return refused(
        fmt::format("{}. Measure both anew on the same machines, one right after the other: its experiment, "
                    "and {}",
                    why, command_for("all-reduce", is_on_cpu(family))));
  one.forecasts = forecasts(family, one.from, ranks, one.assumptions);
  answer.forecast = std::move(one);
  return answer;
}

}  // namespace assay::host::forecast
