// assay ab
#include "ab/ab_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_ab =
    "Runs two variants of an experiment, or two experiments, in turns, each time in new processes, until\n"
    "it is clear whether B is faster, slower or the same, or the budget is spent. Each side is one ordinary run,\n"
    "whose cases have repeats: 'assay compare' reads both. The confidence of the verdict covers all interim looks.\n\n"
    "  assay ab x.toml --a work=10 --b work=10.3\n"
    "  assay ab ours.toml theirs.toml\n"
    "  assay ab x.toml --a-plugins old/plugins --b-plugins new/plugins --fail-if slower\n\n"
    "Exit codes: 0; 1 slower (--fail-if slower), or a run that failed; 2 wrong command line or experiment; 3\n"
    "cannot tell (--fail-if cannot-tell); 130 interrupted. For `git bisect run`, --bisect has other codes: 0\n"
    "not slower, 1 slower, 125 cannot tell or B does not run (the commit is skipped), 255 A does not run, or a\n"
    "wrong command line (the bisection ends).";

}  // namespace

int ab_command(const Arguments& arguments) {
  return ab::ending_bisection(arguments, [&]() -> int {
    ab::AbRequest request;
    Options options("assay ab EXPERIMENT.toml [EXPERIMENT-OF-B.toml] [options]", about_ab);
    options.add("a", request.a.settings, "key=value: a parameter or a setting of side A, the baseline; repeatable");
    options.add("b", request.b.settings, "the same of side B");
    options.add("a-plugins", request.a.plugins, "folder with plugins that A takes before all others; repeatable");
    options.add("b-plugins", request.b.plugins, "the same of B");
    options.add("a-assay", request.a.assay, "the program that runs A: another build of assay, or one of another place");
    options.add("b-assay", request.b.assay, "the same of B");
    options.add("a-env", request.a.env, "NAME=value: in the environment of A's processes; repeatable");
    options.add("b-env", request.b.env, "the same of B");
    options.add("a-a", request.a_a, "no difference: tests the machine itself, A against A");
    options.add("set", request.set, "key=value: of both sides, as for `assay run`; repeatable");
    options.add("filter", request.filter, "key=value: only the cases that match; repeatable");
    options.add("plugin-path", request.plugin_path, "folder with plugins, of both sides; repeatable");
    options.add("metric", request.metric, "what is compared: one metric of `assay compare`");
    options.add("statistic", request.statistic, compare::statistic_help);
    options.add("threshold", request.threshold, "differences up to this many percent count as the same");
    options.add("confidence", request.confidence, "percent, of all looks and cases together");
    options.add("run-to-run", request.run_to_run,
                "percent that runs of one thing differ by at least, however well those at hand agree");
    options.add("states", request.states, compare::states_help);
    options.add("min-runs", request.min_runs, "runs a side before the first look");
    options.notice("min-runs", request.min_runs_given);
    options.add("max-runs", request.max_runs, "runs a side at most");
    options.add("max-time", request.max_time, "no pair of runs begins later");
    options.add("fail-if", request.fail_if, "slower, cannot-tell, or both with a comma: exit codes 1 and 3");
    options.add("bisect", request.bisect, "exit codes for `git bisect run`");
    options.add("output", request.output,
                "a new folder for the runs of both sides; else one below results/ab-EXPERIMENT");
    options.add("dry-run", request.dry_run, "check both sides, and start no case");
    options.add("quiet", request.quiet, "print the result only");
    options.add("json", request.json, "print the result as one JSON object");
    options.positional("experiment", request.experiments);
    if (!options.read(arguments)) return exit_ok;
    return ab::run_in_turns(request);
  });
}

}  // namespace assay::host::cli
