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
    "Says what a data-parallel training step will take on many ranks, from runs on few. RUN holds records of the\n"
    "step (of ddp, on two ranks or more) and of collectives (of all_reduce, on two ranks or more, over several "
    "sizes).\n"
    "The computation takes what it took; messages cost a latency for each step of their algorithm, a time for each\n"
    "message (Gloo) and a time for each byte. What is assumed stands below each table; what was measured on as many "
    "ranks stands beside it.";

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

scaling::Wires wires_of(const std::vector<scaling::ObservedCase>& cases, const std::vector<StepFamily>& families,
                        const std::set<int>& allowed) {
  // What collectives cost alone is told best by those that ran alone.
  std::map<scaling::Link, std::vector<scaling::WirePoint>> of_link;
  for (const auto& points : {scaling::wire_points(cases), scaling::wire_points(families)}) {
    std::map<scaling::Link, std::vector<scaling::WirePoint>> these;
    for (const scaling::WirePoint& p : points)
      if (p.ranks > 1 && (allowed.empty() || allowed.contains(p.ranks))) these[p.link].push_back(p);
    of_link.merge(these);
  }
  scaling::Wires wires;
  for (const auto& [link, points] : of_link) {
    std::vector<scaling::Wire> found;
    for (const scaling::Algorithm algorithm : link.algorithms())
      if (const auto wire = scaling::fitted(algorithm, points)) found.push_back(*wire);
    // A library whose times are no tree's has none.
    for (const scaling::Wire& wire : found)
      if (std::none_of(found.begin(), found.end(),
                       [&](const scaling::Wire& other) { return scaling::is_refuted(wire, other); }))
        wires[link].push_back(wire);
  }
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

// Returns the command that makes missing records on a CPU, or on a GPU. `what` is the experiment's name without its
// device: "ddp-strategies", "all-reduce".
std::string command_for(const std::string& what, bool is_cpu) {
  return fmt::format("'assay run configs/{}{}.toml'", what, is_cpu ? "-cpu" : "");
}
std::string commands_for(const std::string& what) {
  return fmt::format("{} (on a machine without GPUs {})", command_for(what, false), command_for(what, true));
}

bool is_on_cpu(const StepFamily& family) { return family.steps.front().link.library == "gloo"; }

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
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  const std::vector<scaling::ObservedCase> cases = observed_cases(runs);
  std::set<std::string> left_out;
  const std::vector<StepFamily> families = scaling::step_families(cases, left_out);
  for (const std::string& one : left_out) results::say_on_stderr("left out: " + one);
  if (families.empty())
    throw UsageError(
        fmt::format("no case tells the collectives of a training step and their times; expected cases of ddp that are "
                    "ok, as {} makes "
                    "them",
                    commands_for("ddp-strategies")));
  const scaling::Wires all_wires = wires_of(cases, families, allowed);
  const std::string among =
      allowed.empty() ? "" : fmt::format(" (of those on the {} ranks of --from-ranks)", fmt::join(allowed, ", "));

  scaling::Wires wires;
  std::vector<scaling::FamilyOutlook> all;
  for (const StepFamily& family : families) {
    scaling::FamilyOutlook one{.family = &family};
    for (const scaling::MeasuredStep& step : family.steps)
      if (allowed.empty() || allowed.contains(step.ranks)) one.from.insert(step.ranks);
    const bool wants_several = std::any_of(ranks.begin(), ranks.end(), [](int n) { return n > 1; });
    const auto leave_out = [&](const std::string& why) {
      results::say_on_stderr(fmt::format("left out: {}: {}", family.label, why));
    };
    if (one.from.empty() || (wants_several && *one.from.rbegin() < 2)) {
      leave_out(fmt::format("no record on two ranks or more{}, and one rank does not tell how its collectives run; {}",
                            among,
                            allowed.empty() ? "run its experiment once more with --set run.ranks=2"
                                            : "name numbers of ranks that RUN has, or leave out --from-ranks"));
      continue;
    }
    const scaling::Link& link = scaling::basis_of(family, one.from, *std::max_element(ranks.begin(), ranks.end())).link;
    const auto known = all_wires.find(link);
    if (wants_several && known == all_wires.end()) {
      leave_out(
          fmt::format("no record tells what messages cost on {}{}; expected all_reduce there, on two ranks or more, "
                      "over several sizes: {}{}",
                      link.text(), among, command_for("all-reduce", is_on_cpu(family)),
                      link.between_machines ? ", on as many machines" : ""));
      continue;
    }
    one.assumptions = {.wires = known == all_wires.end() ? std::vector<scaling::Wire>() : known->second,
                       .network = network};
    if (const std::string why = scaling::contradiction_in(family, one.from, ranks, one.assumptions); !why.empty()) {
      leave_out(
          fmt::format("{}. Measure both anew on the same machines, one right after the other: its experiment, and "
                      "{}",
                      why, command_for("all-reduce", is_on_cpu(family))));
      continue;
    }
    one.outlooks = scaling::outlooks(family, one.from, ranks, one.assumptions);
    if (known != all_wires.end()) wires.insert(*known);
    all.push_back(std::move(one));
  }
  if (all.empty()) throw UsageError("nothing can be expected from these records, as said above");
  fmt::print("{}", values.count("json") ? scaling::json_of(all, wires)
                                        : scaling::text_of(all, wires, results::table_width(STDOUT_FILENO)));
  return run::exit_ok;
}

}  // namespace

int forecast_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("ranks", po::value<std::string>(), "the numbers of ranks to look at: 8,64,512,4096")(
      "from-ranks", po::value<std::string>(), "take only records on these numbers of ranks; without it all")(
      "ranks-per-machine", po::value<std::string>(), "beyond so many ranks messages cross the network")(
      "network-gbytes-per-s", po::value<double>(),
      "bandwidth of the network for each rank, in GB/s; the three go together")(
      "network-latency-us", po::value<double>(), "latency of a message across the network")("json", "print JSON");
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
