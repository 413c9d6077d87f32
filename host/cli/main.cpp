// The executable: finds the subcommand, and turns what it throws into a message and an exit code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "common/files.hpp"
#include "common/suggest.hpp"
#include "telemetry/environment.hpp"
#include "worker/worker_process.hpp"

namespace {

using namespace assay::host::cli;
using namespace assay::host;

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};
constexpr Command commands[] = {
    {"run", "run an experiment file and write its results", run_command},
    {"list", "list the plugins and devices that this host finds", list_command},
    {"table", "make a table of one run or several, with other columns or in another form", table_command},
    {"compare", "put runs beside each other: ratios, verdicts, cost", compare_command},
    {"report", "one HTML page of a run or several: tables, plots, comparison", report_command},
    {"ab", "two variants of an experiment in turns, until it is clear which is faster", ab_command},
    {"kernels", "where the time of a step goes on the device, from a run's kernels", kernels_command},
    {"describe", "print a workload's parameters, phases and metrics", describe_command},
    {"plan", "what an experiment will take on a device, which need not be here: memory, time, disk", plan_command},
    {"forecast", "what a data-parallel step will take on many ranks, from runs on few", forecast_command},
    {"describe-device", "write the file of this machine's device that plan reads", describe_device_command},
    {"validate", "ask of a plugin all that a host can check, before anyone measures with it", validate_command},
    {"new", "write a new plugin project that builds: assay new plugin NAME", new_command},
    {"submit", "submit experiments to Slurm as a batch", submit_command},
    {"status", "how a batch stands, from its files and one question to Slurm", status_command},
    {"collect", "bring the records of a batch, or of several runs, into one run", collect_command},
    {"cancel", "end the jobs of a batch; finished cases are kept", cancel_command},
    {"site", "print the site files that there are, or write one for this cluster", site_command},
};

void print_help() {
  fmt::print(
      "assay {}: a plugin-based benchmark host for training workloads\n\n"
      "Usage: assay COMMAND [arguments]\n\nCommands:\n",
      telemetry::assay_version());
  for (const Command& command : commands) fmt::print("  {:<15} {}\n", command.name, command.summary);
  fmt::print(
      "\n  --version  version, source revision, compiler, and the ABIs of plugins and devices\n"
      "  --help     this text; 'assay COMMAND --help' for one command\n\n"
      "Exit codes: 0 every case is ok or allowed, 1 a case failed, 2 wrong command line or experiment,\n"
      "130 interrupted (finished cases are kept).\n");
}

int dispatch(const std::string& name, const Arguments& arguments) {
  if (name == "--help" || name == "-h" || name == "help") return print_help(), run::exit_ok;
  if (name == "--version") {
    fmt::print("assay {} (revision {}, {})\nplugin ABI {}, device ABI {}\n", telemetry::assay_version(),
               telemetry::assay_revision(), telemetry::assay_compiler(), telemetry::assay_abi(),
               telemetry::assay_device_abi());
    return run::exit_ok;
  }
  if (name == "worker") return worker::worker_main();  // started by the host itself, never by a user
  for (const Command& command : commands)
    if (name == command.name) return command.run(arguments);
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  const auto near = nearest(name, names);
  throw UsageError(fmt::format("unknown command '{}'; expected {}{}", name, fmt::join(names, ", "),
                               near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments all(argv + 1, argv + argc);
  if (all.empty()) {
    print_help();
    return run::exit_usage;
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of the write, with a message
  try {
    const int code = dispatch(all.front(), Arguments(all.begin() + 1, all.end()));
    if (std::fflush(stdout) == 0) return code;
    throw std::system_error(errno, std::generic_category(), "the standard output cannot be written");
  } catch (const UsageError& e) {
    fmt::print(stderr, "assay: {}; see 'assay --help'\n", e.what());
    return run::exit_usage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "assay: {}\n", e.what());
    return run::exit_failed;
  }
}
