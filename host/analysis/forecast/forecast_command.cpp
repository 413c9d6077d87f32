#include "forecast/forecast_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/exit_code.hpp"
#include "common/usage_error.hpp"
#include "forecast/forecast_check.hpp"
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

std::string commands_for(const std::string& what) {
  return fmt::format("{} (on a machine without GPUs {})", command_for(what, false), command_for(what, true));
}

// Each measured number of ranks from the smaller ones.
int check(const ForecastRequest& request, const std::vector<ObservedCase>& cases,
          const std::vector<StepFamily>& families, const std::set<int>& allowed) {
  const Check found = check_of(cases, families, allowed);
  for (const std::string& one : found.left_out) results::say_on_stderr("left out: " + one);
  if (found.rows.empty())
    throw UsageError(fmt::format(
        "no forecast can be checked{}; expected cases on three ranks or more, the same on fewer (two or more of them), "
        "and all_reduce on fewer",
        among_text(allowed)));
  fmt::print("{}", request.json ? json_of(found) : text_of(found, results::table_width(STDOUT_FILENO)));
  if (!request.within_percent || found.worst_percent() <= *request.within_percent) return exit_ok;
  results::say_on_stderr(fmt::format("a forecast is off by {:.1f}%, more than --within {:g}", found.worst_percent(),
                                     *request.within_percent));
  return exit_failed;
}

int print_forecasts(const ForecastRequest& request, const Question& question, const std::vector<ObservedCase>& cases,
                    const std::vector<StepFamily>& families) {
  const Wires all_wires = wires_of(cases, families, question.allowed);
  Wires wires;
  std::vector<FamilyForecast> all;
  for (const StepFamily& family : families) {
    Answer answer = forecast_of(family, question, all_wires);
    for (const std::string& one : answer.left_out) results::say_on_stderr("left out: " + one);
    if (!answer.forecast) continue;
    if (answer.forecast->wires) wires.insert(*answer.forecast->wires);
    all.push_back(std::move(*answer.forecast));
  }
  if (all.empty()) throw UsageError("nothing can be expected from these records, as said above");
  fmt::print("{}", request.json ? json_of(all, wires) : text_of(all, wires, results::table_width(STDOUT_FILENO)));
  return exit_ok;
}

}  // namespace

int forecast_steps(const ForecastRequest& request) {
  if (request.runs.empty()) throw UsageError("no run is given; expected run folders");
  Question question{.network = network_of(request)};
  if (request.check && (request.ranks || question.network))
    throw UsageError("--check forecasts what was measured; leave out --ranks and the network");
  if (request.within_percent && !request.check) throw UsageError("--within is of --check; add it");
  if (request.within_percent) positive("within", *request.within_percent);
  if (!request.check && !request.ranks)
    throw UsageError("--ranks is missing; expected numbers of ranks, such as --ranks 8,64,512, or --check");
  if (request.ranks) question.ranks = ranks_in("ranks", *request.ranks);
  if (request.from_ranks)
    for (const int n : ranks_in("from-ranks", *request.from_ranks)) question.allowed.insert(n);
  question.among = among_text(question.allowed);

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
  return request.check ? check(request, cases, families, question.allowed)
                       : print_forecasts(request, question, cases, families);
}

}  // namespace assay::host::forecast
