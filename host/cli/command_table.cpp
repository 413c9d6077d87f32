#include "cli/command_table.hpp"

namespace assay::host::cli {

// Each is in the file of its name, gets the arguments after that, and returns the process's exit code.
int run_command(const Arguments& arguments);
int ab_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int clean_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int history_command(const Arguments& arguments);
int import_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int forecast_command(const Arguments& arguments);
int time_command(const Arguments& arguments);
int table_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int kernels_command(const Arguments& arguments);
int describe_command(const Arguments& arguments);
int new_command(const Arguments& arguments);
int submit_command(const Arguments& arguments);
int status_command(const Arguments& arguments);
int collect_command(const Arguments& arguments);
int cancel_command(const Arguments& arguments);
int site_command(const Arguments& arguments);
int validate_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);
int describe_device_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);

namespace {

constexpr Command commands[] = {
    {"run", "run an experiment file and write its results", run_command},
    {"time", "time a program as a whole: assay time -- PROGRAM ARGUMENTS", time_command},
    {"list", "list the plugins and devices that this host finds", list_command},
    {"table", "make a table of one run or several, with other columns or in another form", table_command},
    {"compare", "compare runs: ratios, verdicts, cost", compare_command},
    {"history", "each case over all runs, and since when it is slower or faster", history_command},
    {"import", "results of nccl-tests, google-benchmark, MLPerf and others as the records of a run", import_command},
    {"export", "a run in the formats of other programs: Prometheus, google-benchmark, MLPerf", export_command},
    {"report", "one HTML page of a run or several: tables, plots, comparison", report_command},
    {"ab", "two variants of an experiment in turns, until it is clear which is faster", ab_command},
    {"kernels", "where the time of a step goes on the device, from a run's kernels", kernels_command},
    {"describe", "print a workload's parameters, phases and metrics", describe_command},
    {"plan", "what an experiment will take on a device, which need not be here: memory, time, disk", plan_command},
    {"forecast", "what a training step will take on many ranks, from runs on few", forecast_command},
    {"describe-device", "write the file of this machine's device that plan reads", describe_device_command},
    {"doctor", "what this machine has, what assay would use, and what would spoil a measurement", doctor_command},
    {"validate", "check a plugin before anyone measures with it", validate_command},
    {"new", "write a new plugin project that builds: assay new plugin NAME", new_command},
    {"submit", "submit experiments as a batch, to Slurm, to hosts that ssh reaches or to Kubernetes", submit_command},
    {"status", "how a batch stands", status_command},
    {"collect", "bring the records of a batch, or of several runs, into one run", collect_command},
    {"cancel", "end the jobs of a batch; finished cases are kept", cancel_command},
    {"site", "list the site files, or write one for this cluster", site_command},
    {"clean", "list caches, generated data and leftovers with their sizes, or remove them", clean_command},
    {"completion", "print the completion script for bash, zsh or fish", completion_command},
};

}  // namespace

std::span<const Command> all_commands() { return commands; }

}  // namespace assay::host::cli
