// assay forecast RUN
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "cli/options.hpp"
#include "results/find_runs.hpp"
#include "results/tabled_runs.hpp"
#include "results/terminal.hpp"
#include "scaling/outlook_report.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
using scaling::StepFamily;

constexpr const char* about_forecast =
    "Expects a data-parallel training step on many ranks from runs on few: RUN has the step's records (of ddp), and\n"
    "the collectives' (of all_reduce, over several sizes). The computation is as it was measured, messages cost a\n"
    "latency for each step of their algorithm and a time for each byte. Says what it assumes; where a record has the\n"
    "number of ranks that is asked for, what was measured stands beside it.";

constexpr int most_ranks = 1 << 20;

std::vector<int> ranks_in(const char* option, const std::string& text) {
  std::vector<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    int value = 0;
    const auto [stopped, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stopped != text.data() + end || value < 1 || value > most_ranks)
      throw UsageError(fmt::format("--{} has '{}'; expected numbers of ranks from 1 to {}, separated by commas", option,
                                   text.substr(begin, end - begin), most_ranks));
    if (std::find(ranks.begin(), ranks.end(), value) == ranks.end()) ranks.push_back(value);
    begin = end + 1;
  }
  return ranks;
}

double positive(const po::variables_map& values, const char* option) {
  const auto value = values[option].as<double>();
  if (!std::isfinite(value) || value <= 0)
    throw UsageError(fmt::format("--{} is {}; expected a number above 0", option, value));
  return value;
}

std::optional<scaling::Network> network_of(const po::variables_map& values) {
  const bool asked = values.count("ranks-per-machine") != 0;
  if (asked != (values.count("network-gbytes-per-s") != 0) || asked != (values.count("network-latency-us") != 0))
    throw UsageError(
        "--ranks-per-machine, --network-gbytes-per-s and --network-latency-us belong together; give all or none");
  if (!asked) return std::nullopt;
  const std::vector<int> machine = ranks_in("ranks-per-machine", values["ranks-per-machine"].as<std::string>());
  if (machine.size() != 1) throw UsageError("--ranks-per-machine is several numbers; expected one");
  return scaling::Network{.ranks_per_machine = machine.front(),
                          .latency_s = positive(values, "network-latency-us") * 1e-6,
                          .seconds_per_byte = 1e-9 / positive(values, "network-gbytes-per-s")};
}

std::vector<scaling::Wire> wires_of(const std::vector<scaling::ObservedCase>& cases,
                                    const std::vector<StepFamily>& families, const std::set<int>& allowed) {
  std::vector<scaling::WirePoint> points = scaling::wire_points(cases);
  // What collectives cost alone is told best by those that ran alone.
  if (points.empty()) points = scaling::wire_points(families);
  if (!allowed.empty()) std::erase_if(points, [&](const auto& p) { return !allowed.contains(p.ranks); });
  std::vector<scaling::Wire> wires;
  for (const auto algorithm : {scaling::Algorithm::ring, scaling::Algorithm::tree})
    if (const auto wire = scaling::fitted(algorithm, points)) wires.push_back(*wire);
  if (wires.empty())
    throw UsageError(
        "no record tells what a message between ranks costs; expected cases of the workload all_reduce on two ranks or "
        "more, over several sizes (configs/all-reduce.toml), in the runs that are given");
  return wires;
}

std::vector<scaling::ObservedCase> observed_cases(const std::vector<results::TabledRun>& runs) {
  std::vector<scaling::ObservedCase> cases;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& r : run.records) {
      scaling::ObservedCase one{.record = &r};
      const record::Environment* const environment = run.source.environment_of(r);
      const std::string cores = environment ? environment->fact_or("cpu.usable_cores", "") : "";
      double count = 0;
      if (std::from_chars(cores.data(), cores.data() + cores.size(), count).ec == std::errc() && count > 0)
        one.processors = count;
      cases.push_back(one);
    }
  return cases;
}

int forecast(const po::variables_map& values) {
  if (!values.count("run")) throw UsageError("no run is given; expected run folders");
  if (!values.count("ranks"))
    throw UsageError("--ranks is missing; expected numbers of ranks, such as --ranks 8,64,512");
  const std::vector<int> ranks = ranks_in("ranks", values["ranks"].as<std::string>());
  const auto network = network_of(values);
  std::set<int> allowed;
  if (values.count("from-ranks"))
    for (const int n : ranks_in("from-ranks", values["from-ranks"].as<std::string>())) allowed.insert(n);

  std::vector<std::string> warnings;
  std::vector<results::TabledRun> runs = results::read_tabled_runs(list_of(values, "run"), warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "assay: {}\n", warning);
  const std::vector<scaling::ObservedCase> cases = observed_cases(runs);
  std::set<std::string> left_out;
  const std::vector<StepFamily> families = scaling::step_families(cases, left_out);
  if (!left_out.empty())
    fmt::print(stderr, "assay: left out, because {} no number and size of {} collectives: {}\n",
               left_out.size() == 1 ? "it tells" : "they tell", left_out.size() == 1 ? "its" : "their",
               fmt::join(left_out, ", "));
  if (families.empty())
    throw UsageError("no case tells the collectives of a training step; expected cases of ddp that are ok");
  const std::vector<scaling::Wire> wires = wires_of(cases, families, allowed);

  std::vector<scaling::FamilyOutlook> all;
  for (const StepFamily& family : families) {
    scaling::FamilyOutlook one{.family = &family};
    for (const scaling::MeasuredStep& step : family.steps)
      if (allowed.empty() || allowed.contains(step.ranks)) one.from.insert(step.ranks);
    if (one.from.empty()) {
      fmt::print(stderr, "assay: {} has no record on the ranks of --from-ranks\n", family.label);
      continue;
    }
    one.assumptions = {.wires = wires, .network = network};
    one.outlooks = scaling::outlooks(family, one.from, ranks, one.assumptions);
    all.push_back(std::move(one));
  }
  if (all.empty()) throw UsageError("no case is left; --from-ranks leaves out all");
  fmt::print("{}", values.count("json") ? scaling::json_of(all, wires)
                                        : scaling::text_of(all, wires, results::terminal_width(STDOUT_FILENO)));
  return run::exit_ok;
}

}  // namespace

int forecast_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("ranks", po::value<std::string>(), "the numbers of ranks to look at: 8,64,512,4096")(
      "from-ranks", po::value<std::string>(), "take only records on these numbers of ranks; without it all")(
      "ranks-per-machine", po::value<std::string>(), "beyond so many ranks messages cross the network")(
      "network-gbytes-per-s", po::value<double>(), "of each rank's share of it, in 10^9 bytes a second")(
      "network-latency-us", po::value<double>(), "of a message across it")("json", "print JSON");
  const ParsedOptions options = parse_options(arguments, "assay forecast RUN [RUN ...] --ranks N,N [options]",
                                              about_forecast, visible, "run", -1);
  if (options.help) return run::exit_ok;
  try {
    return forecast(options.values);
  } catch (const results::NoRunError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
