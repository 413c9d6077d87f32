// assay run, assay time
#include "batch/job_environment.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "console/run_command.hpp"
#include "console/set_instead.hpp"
#include "console/time_command.hpp"
#include "plan/dry_run.hpp"
#include "plan/experiment_plan.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_time =
    "Times a program as a whole, from before its start until its end is known, each time in the same way: the\n"
    "workload `command` without an experiment file. Results are those of `assay run`, below results/PROGRAM/.\n\n"
    "  assay time -- sleep 0.1\n"
    "  assay time --set 'sweep.level=[1,6,9]' -- gzip -kf -{level} corpus.txt";

// What wings above the console know.
void take_wings(console::RunRequest& request) {
  request.show_dry_run = plan::show_dry_run;
  request.refused_cases = plan::refused_by_plugin;
  request.job_start = batch::start_of_this_job;
  request.job_nodes = batch::nodes_of_this_job;
  request.job_node = batch::node_of_this_process;
  request.is_attempt_over = batch::is_attempt_over;
}

constexpr const char* about_run =
    "Validates the experiment, runs each of its cases in a worker process, and leaves the results below\n"
    "results/NAME/. All mistakes of the file are reported in one pass, before anything starts. Several\n"
    "experiments run one after the other. The name of a workload stands for an experiment without a file:\n"
    "'assay run decoder --set size=tiny'.";

}  // namespace

int run_command(const Arguments& arguments) {
  console::RunRequest request;
  Options options("assay run EXPERIMENT.toml... [options]", about_run);
  options.add("set", request.set, "key=value: change a parameter or a setting of the file (dotted names); repeatable");
  options.add("filter", request.filter,
              "key=value, or with a list (size=small,base), !=, <, <=, >, >=: run only the cases that match; "
              "repeatable");
  options.add("dry-run", request.dry_run,
              "print the cases, with --resume which of them are done, and what they will take here (for other devices: "
              "`assay plan`); run nothing");
  options.add("resume", request.resume,
              "continue the newest run of this experiment, whose axes may have new values: finished cases are not "
              "repeated, unless other code or another machine ran them");
  options.add("new", request.start_new,
              "with --resume: start a new run, instead of an error, if more than values of axes has changed");
  options.add("any-machine", request.any_machine, "with --resume: cases that another machine has finished count");
  options.add("output", request.output,
              "folder for results instead of [output] dir; or a file that ends in .csv, .md or .json: that view of the "
              "run goes there, too");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; repeatable");
  options.add(
      "hosts", request.hosts_file,
      "file with a host a line (\"n1\", \"n2:4\" or \"n2 slots=4\"): ranks are started there by ssh; the first has "
      "the results. In place of [run] hosts");
  options.add("in-process", request.in_process, "run cases in this process, for a debugger; a crash ends the run");
  options.add("shard", request.shard,
              "K/N: the Kth of N parts of the cases, for an array of jobs (`assay collect` brings the parts together); "
              "or the folder of a shard of a batch, in its script");
  options.add("node-ready", request.node_ready,
              "with the folder of a shard: look whether this node can run its cases, and run nothing");
  options.add("until", request.until, "with the folder of a shard: when its job ends, in seconds since 1970");
  options.add("quiet", request.quiet, "print errors alone, on standard error");
  options.add("json", request.json, "print one JSON event per line on standard output");
  options.positional("experiment", request.experiments, -1, "run needs an experiment file");
  options.explain_unknown([&](const std::string& option) { return console::set_instead(arguments, option); });
  if (!options.read(arguments)) return exit_ok;
  request.arguments = arguments;
  take_wings(request);
  return console::run_experiments(request);
}

int time_command(const Arguments& arguments) {
  console::TimeRequest request;
  Options options("assay time [options] -- PROGRAM ARGUMENTS...", about_time);
  options.add("runs", request.runs, "how often the program is measured");
  options.add("warmup", request.warmup, "how often it runs before that");
  options.add("set", request.run.set,
              "key=value, as in `assay run`: 'sweep.n=[1,2]' runs the program with each value in the place of {n}; "
              "repeatable");
  options.add("output", request.run.output,
              "folder for results instead of results; or a file that ends in .csv, .md or .json");
  options.add("dry-run", request.run.dry_run, "print the cases; run nothing");
  options.add("plugin-path", request.run.plugin_path, "folder with plugins, searched first; repeatable");
  options.add("quiet", request.run.quiet, "print errors alone, on standard error");
  options.add("json", request.run.json, "print one JSON event per line on standard output");
  options.positional("program", request.words);
  options.explain_unknown([](const std::string&) { return std::string("options of the program stand behind --"); });
  if (!options.read(arguments)) return exit_ok;
  take_wings(request.run);
  return console::time_program(std::move(request));
}

}  // namespace assay::host::cli
