#include "forecast/forecast_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/exit_code.hpp"
#include "common/usage_error.hpp"
#include "forecast/forecast_report.hpp"
#include "results/find_runs.hpp"
#include "results/tabled_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::forecast {
namespace {

constexpr int highest_rank_count = 1 << 20;

std::vector<int> ranks_in(const char* option, const std::string& text) {
  std::vector<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    int value = 0;
    const auto [stopped, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stopped != text.data() + end || value < 1 || value > highest_rank_count)
      throw UsageError(fmt::format("--{} has '{}'; expected numbers of ranks from 1 to {}, separated by commas", option,
                                   text.substr(begin, end - begin), highest_rank_count));
    if (std::find(ranks.begin(), ranks.end(), value) == ranks.end()) ranks.push_back(value);
    begin = end + 1;
  }
  return ranks;
}

double positive(const char* option, double value) {
  if (!std::isfinite(value) || value <= 0)
    throw UsageError(fmt::format("--{} is {}; expected a number above 0", option, value));
  return value;
}

std::optional<Network> network_of(const ForecastRequest& request) {
  const bool asked = request.ranks_per_machine.has_value();
  if (asked != request.network_gbytes_per_s.has_value() || asked != request.network_latency_us.has_value())
    throw UsageError(
        "--ranks-per-machine, --network-gbytes-per-s and --network-latency-us belong together; give all or none");
  if (!asked) return std::nullopt;
  const std::vector<int> machine = ranks_in("ranks-per-machine", *request.ranks_per_machine);
  if (machine.size() != 1) throw UsageError("--ranks-per-machine is several numbers; expected one");
  return Network{.ranks_per_machine = machine.front(),
                 .latency_s = positive("network-latency-us", *request.network_latency_us) * 1e-6,
                 .seconds_per_byte = 1e-9 / positive("network-gbytes-per-s", *request.network_gbytes_per_s)};
}

Wires wires_of(const std::vector<ObservedCase>& cases, const std::vector<StepFamily>& families,
               const std::set<int>& allowed) {
  // Collectives that ran alone show best what one costs alone.
  std::map<Link, std::vector<WirePoint>> of_link;
  for (const auto& points : {wire_points(cases), wire_points(families)}) {
    std::map<Link, std::vector<WirePoint>> these;
    for (const WirePoint& p : points)
      if (p.ranks > 1 && (allowed.empty() || allowed.contains(p.ranks))) these[p.link].push_back(p);
    of_link.merge(these);
  }
  Wires wires;
  for (const auto& [link, points] : of_link) {
    std::vector<Wire> found;
    for (const Algorithm algorithm : link.algorithms())
      if (const auto wire = fitted(algorithm, points)) found.push_back(*wire);
    // A library whose times are no tree's has none.
    for (const Wire& wire : found)
      if (std::none_of(found.begin(), found.end(), [&](const Wire& other) { return is_refuted(wire, other); }))
        wires[link].push_back(wire);
  }
  return wires;
}

std::vector<ObservedCase> observed_cases(const std::vector<results::TabledRun>& runs) {
  std::vector<ObservedCase> cases;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& r : run.records) {
      ObservedCase one{.record = &r};
      const record::Environment* const environment = run.source.environment_of(r);
      const std::string cores = environment ? environment->fact_or("cpu.usable_cores", "") : "";
      double count = 0;
      if (std::from_chars(cores.data(), cores.data() + cores.size(), count).ec == std::errc() && count > 0)
        one.processors = count;
      cases.push_back(one);
    }
  return cases;
}

// Returns the command that makes missing records on a CPU, or on a GPU. `what` is the experiment's name without its
// device: "ddp-strategies", "all-reduce".
std::string command_for(const std::string& what, bool is_cpu) {
  return fmt::format("'assay run configs/{}{}.toml'", what, is_cpu ? "-cpu" : "");
}
std::string commands_for(const std::string& what) {
  return fmt::format("{} (on a machine without GPUs {})", command_for(what, false), command_for(what, true));
}

bool is_on_cpu(const StepFamily& family) { return family.steps.front().link.library == "gloo"; }

}  // namespace

int forecast_steps(const ForecastRequest& request) {
  if (request.runs.empty()) throw UsageError("no run is given; expected run folders");
  if (!request.ranks) throw UsageError("--ranks is missing; expected numbers of ranks, such as --ranks 8,64,512");
  const std::vector<int> ranks = ranks_in("ranks", *request.ranks);
  const auto network = network_of(request);
  std::set<int> allowed;
  if (request.from_ranks)
    for (const int n : ranks_in("from-ranks", *request.from_ranks)) allowed.insert(n);

  std::vector<std::string> warnings;
  std::vector<results::TabledRun> runs = results::read_tabled_runs(request.runs, warnings);
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  const std::vector<ObservedCase> cases = observed_cases(runs);
  if (cases.empty())
    throw UsageError(fmt::format("nothing can be expected: no case of {} has finished; name runs that have records",
                                 fmt::join(request.runs, ", ")));
  std::set<std::string> left_out;
  const std::vector<StepFamily> families = step_families(cases, left_out);
  for (const std::string& one : left_out) results::say_on_stderr("left out: " + one);
  if (families.empty())
    throw UsageError(fmt::format(
        "no case reports the collectives of a training step and their times; expected cases of ddp that are "
        "ok, as {} makes "
        "them",
        commands_for("ddp-strategies")));
  const Wires all_wires = wires_of(cases, families, allowed);
  const std::string among =
      allowed.empty() ? "" : fmt::format(" (of those on the {} ranks of --from-ranks)", fmt::join(allowed, ", "));

  Wires wires;
  std::vector<FamilyForecast> all;
  for (const StepFamily& family : families) {
    FamilyForecast one{.family = &family};
    for (const MeasuredStep& step : family.steps)
      if (allowed.empty() || allowed.contains(step.ranks)) one.from.insert(step.ranks);
    const bool wants_several = std::any_of(ranks.begin(), ranks.end(), [](int n) { return n > 1; });
    const auto leave_out = [&](const std::string& why) {
      results::say_on_stderr(fmt::format("left out: {}: {}", family.label, why));
    };
    if (one.from.empty() || (wants_several && *one.from.rbegin() < 2)) {
      leave_out(fmt::format("no record on two ranks or more{}, and one rank does not show how its collectives run; {}",
                            among,
                            allowed.empty() ? "run its experiment once more with --set run.ranks=2"
                                            : "name numbers of ranks that RUN has, or leave out --from-ranks"));
      continue;
    }
    const Link& link = basis_of(family, one.from, *std::max_element(ranks.begin(), ranks.end())).link;
    const auto known = all_wires.find(link);
    if (wants_several && known == all_wires.end()) {
      leave_out(
          fmt::format("no record shows what messages cost on {}{}; expected all_reduce there, on two ranks or more, "
                      "over several sizes: {}{}",
                      link.text(), among, command_for("all-reduce", is_on_cpu(family)),
                      link.between_machines ? ", on as many machines" : ""));
      continue;
    }
    one.assumptions = {.wires = known == all_wires.end() ? std::vector<Wire>() : known->second, .network = network};
    if (const std::string why = contradiction_in(family, one.from, ranks, one.assumptions); !why.empty()) {
      leave_out(
          fmt::format("{}. Measure both anew on the same machines, one right after the other: its experiment, and "
                      "{}",
                      why, command_for("all-reduce", is_on_cpu(family))));
      continue;
    }
    one.forecasts = forecasts(family, one.from, ranks, one.assumptions);
    if (known != all_wires.end()) wires.insert(*known);
    all.push_back(std::move(one));
  }
  if (all.empty()) throw UsageError("nothing can be expected from these records, as said above");
  fmt::print("{}", request.json ? json_of(all, wires) : text_of(all, wires, results::table_width(STDOUT_FILENO)));
  return exit_ok;
}

}  // namespace assay::host::forecast
