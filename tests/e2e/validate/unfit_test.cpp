// Each unfit plugin is found by the check that should, by name, and by no other.
#include "e2e/support/sandbox.hpp"

#include <algorithm>
#include <ostream>
#include <set>

namespace assay::test {
namespace {

struct Unfit {
  const char* rule;
  const char* check;
  const char* text;  // a part of what is found
  int level = 2;
  const char* more = "";  // another check that finds the same, with it
};
void PrintTo(const Unfit& unfit, std::ostream* out) { *out << unfit.rule; }

const Unfit all_unfit[] = {
    {"exits_in_constructor", "load.survives", "the process ends: exit code 0", 1},
    {"aborts_in_constructor", "load.survives", "signal 6", 1},
    {"crashes_in_constructor", "load.survives", "signal 11", 1},
    {"hangs_in_constructor", "load.survives", "does not come to an end within 1", 1},
    {"prints_in_constructor", "load.silent", "printed", 1},
    {"sleeps_in_constructor", "load.quick", "it took 2.", 1},
    {"sets_handler_in_constructor", "load.leaves", "handlers of signals are others: User defined signal 1", 1},
    {"sets_variable_in_constructor", "load.leaves", "UNFIT", 1},
    {"moves_in_constructor", "load.leaves", "the working folder is /", 1},
    {"opens_in_constructor", "load.leaves", "/dev/null", 1},
    {"starts_thread_in_constructor", "load.leaves", "1 threads run", 1},
    {"undefined_symbol", "load.resolved", "a_symbol_that_nobody_defines", 1},
    {"other_symbol", "entry.symbol", "does not export 'assay_entry_v1'", 1},
    {"exports_more", "entry.alone", "helper_of_everyone", 1},
    {"short_entry", "entry.sizes", "struct_size 8", 1},
    {"short_workload", "entry.sizes", "struct_size 16", 1},
    {"short_param", "entry.sizes", "struct_size 8", 1},
    {"newer_major", "entry.version", "built for ABI 2.", 1},
    {"newer_host", "entry.version", "needs a host with ABI 1.99", 1},
    {"no_run", "entry.functions", "lacks one of create, destroy, setup, run", 1},
    {"null_workload", "tables.rows", "workload 0 of its table is NULL", 1},
    {"null_params", "tables.rows", "counts 3 parameters but its table is NULL", 1},
    {"null_param", "tables.rows", "parameter 2 is malformed: its row is NULL", 1},
    {"null_choice", "tables.rows", "choice 1 of parameter 'mode' is NULL", 1},
    {"many_params", "tables.rows", "counts 4000000000 parameters; expected at most 10000", 1},
    {"many_choices", "tables.rows", "counts 4000000000 choices of parameter 'mode'", 1},
    {"name_with_blank", "tables.names", "parameter 0 is malformed: it has no valid name", 1},
    {"name_twice", "tables.names", "has the parameter 'n' twice", 1},
    {"name_of_column", "tables.names", "the parameter 'status' has the name of a column", 1},
    {"phase_twice", "tables.names", "names the phase 'add' twice", 1},
    {"latin_help", "tables.text", "the help of parameter 'n' is not UTF-8", 1},
    {"escape_in_help", "tables.text", "control characters", 1},
    {"default_out_of_range", "tables.values", "the default of the parameter 'n' is 5000, outside its range", 1},
    {"default_nan", "tables.values", "NaN", 1},
    {"range_reversed", "tables.values", "has min above max", 1},
    {"unknown_type", "tables.values", "has type 9", 1},
    {"unknown_scope", "tables.values", "has scope 7", 1},
    {"default_no_choice", "tables.choices", "is \"zzz\", which is not one of its choices", 1},
    {"choice_twice", "tables.choices", "has a choice twice", 1},
    {"preset_of_nothing", "tables.presets", "sets 'depth', which is no parameter", 1},
    {"unit_with_blank", "tables.units", "\" elements\"", 1},
    {"without_help", "tables.help", "the parameter 'n' has no help", 1},
    {"no_object", "create.default", "ASSAY_OK, and no object"},
    {"object_and_failure", "create.default", "and an object, which nobody destroys"},
    {"fails_in_create", "create.default", "ASSAY_INTERNAL: it cannot"},
    {"crashes_at_bound", "create.values", "n = 1000: the process ends: signal 11"},
    {"refuses_without_text", "create.values", "n = 1000: ASSAY_INVALID_ARGUMENT, without a text"},
    {"knows_every_extension", "create.extensions", "for the id \"assay.nobody/1\" it gives a table"},
    {"crashes_at_null_extension", "create.extensions", "NULL: the process ends"},
    {"needs_every_extension", "create.bare", "create: the process ends: signal 11"},
    {"crashes_in_early_destroy", "create.destroy", "the process ends: signal 11"},
    {"shares_state", "objects.two", "the first object, after the second was destroyed: the process ends: signal 11"},
    {"fails_in_setup", "setup.works", "the device is made of wood"},
    {"fails_in_run", "run.works", "ASSAY_DEVICE_ERROR: the device is tired"},
    {"crashes_in_run", "run.works", "the process ends: signal 11"},
    {"hangs_in_run", "run.works", "does not come to an end within 1"},
    {"exits_in_run", "run.works", "the process ends: exit code 0"},
    {"allocates_in_run", "run.allocation", "allocations in 3 steps: 3"},
    {"waits_in_run", "run.synchronisation", "waits for the device in 3 steps: 3"},
    {"logs_in_run", "run.log", "lines to the log in 3 steps: 3"},
    {"prints_in_run", "run.output", "printed"},
    {"leaves_phase_open", "marks.balanced", "a phase was begun and not ended in the same step"},
    {"ends_other_phase", "marks.balanced", "phase_end with index 77"},
    {"never_marks", "marks.seen", "'add' did not occur"},
    {"never_reports", "metrics.seen", "'sum' did not occur"},
    {"reports_nan", "metrics.values", "the metric 'sum' is nan"},
    {"reports_other_metric", "metrics.values", "metric with index 9"},
    {"work_that_grows", "work.stated", "after 4 steps it is another"},
    {"items_without_unit", "work.stated", "16 items, and the workload has no item_unit"},
    {"work_without_end", "work.stated", "no device computes that fast"},
    {"fails_in_finish", "finish.works", "it does not end"},
    {"releases_in_finish", "finish.steps", "there is no memory to work on"},
    {"wrong_result", "verify.passes", "ASSAY_WRONG_RESULT: the sum is 41, expected 42"},
    {"verifies_without_text", "verify.says", "no text"},
    {"crashes_in_destroy", "destroy.works", "destroy: the process ends: signal 11"},
    {"hangs_in_deinit", "destroy.works", "deinit: it does not come to an end within 1"},
    {"keeps_memory", "leaves.memory", "1 blocks are left"},
    {"keeps_heap", "leaves.heap", "one object more leaves 1"},
    {"keeps_thread", "leaves.threads", "one object more leaves 1 threads"},
    {"keeps_descriptor", "leaves.descriptors", "/dev/null"},
    {"keeps_handler", "leaves.signals", "User defined signal 1"},
    {"keeps_folder", "leaves.folder", "it is /"},
    {"keeps_variable", "leaves.environment", "UNFIT"},
    {"keeps_process", "leaves.processes", "still run"},
    {"aborts_at_exit", "exit.clean", "the process ends: signal 6"},
    {"exits_with_code", "exit.clean", "the process ends: exit code 3"},
    {"hangs_at_exit", "exit.clean", "does not come to an end within 1"},
    {"ignores_refusal", "memory.refused", "allocation 1 of 2 refused: the process ends: signal 11", 3},
    {"hides_refusal", "memory.refused", "setup succeeds, and then: ASSAY_INTERNAL: there is no memory to work on", 3},
    {"keeps_after_refusal", "memory.given_back", "allocation 2 of 2 refused: 1 blocks are left", 3},
    {"verifies_nothing", "verify.finds", "larger by half", 3},
    {"draws_without_seed", "seed.same", "the metric 'sum' of step 1 is", 3},
    {"keeps_no_account", "account.kept", "gives NULL for \"assay.account/1\""},
    {"miscounts", "account.counts", "after warm-up and measured steps it has 6 steps of 5"},
    {"repeats_otherwise", "account.repeats", "step 1 of the warm-up left 1, but 1.5 when it was repeated"},
    {"idle_when_measured", "run.stages", "a measured step skips work"},
};

class UnfitPlugins : public Sandbox, public testing::WithParamInterface<Unfit> {
 protected:
  // Of all checks that have found something, by name.
  static std::map<std::string, std::string> findings(const nlohmann::json& report) {
    std::map<std::string, std::string> found;
    const auto add = [&](const nlohmann::json& checks) {
      for (const auto& check : checks)
        if (check.at("answer") == "error" || check.at("answer") == "warning")
          found[check.at("check")] = check.at("text").get<std::string>();
    };
    add(report.at("checks"));
    for (const auto& workload : report.at("workloads")) add(workload.at("checks"));
    return found;
  }

  nlohmann::json validated(const std::string& rule, int level, int expected_code) const {
    const RunResult result =
        run({"validate", std::string(UNFIT_PLUGINS) + "/unfit_" + rule + ".so", "--json", "--level",
             std::to_string(level), "--timeout", rule.starts_with("hangs") ? "1" : "60"});
    EXPECT_EQ(result.exit.code, expected_code) << result.output;
    return nlohmann::json::parse(result.output);
  }
};

TEST_P(UnfitPlugins, AreFoundByTheCheckThatShould) {
  const Unfit& unfit = GetParam();
  const bool is_warning =
      std::set<std::string>{"load.silent", "load.quick",   "entry.alone", "tables.units", "tables.help",
                            "run.log",     "run.output",   "marks.seen",  "metrics.seen", "verify.says",
                            "leaves.heap", "verify.finds", "seed.same",   "account.kept"}
          .contains(unfit.check);
  const nlohmann::json report = validated(unfit.rule, unfit.level, is_warning ? 0 : 1);
  const std::map<std::string, std::string> found = findings(report);
  ASSERT_TRUE(found.contains(unfit.check)) << report.dump(2);
  EXPECT_PRED2(contains, found.at(unfit.check), unfit.text);
  EXPECT_EQ(found.size(), 1u) << report.dump(2);
}

INSTANTIATE_TEST_SUITE_P(All, UnfitPlugins, testing::ValuesIn(all_unfit),
                         [](const auto& info) { return std::string(info.param.rule); });

class SoundPlugin : public UnfitPlugins {};

TEST_P(SoundPlugin, HasNoFindingAndEveryCheckIsAsked) {
  const nlohmann::json report = validated(GetParam().rule, 3, 0);
  EXPECT_EQ(report.at("errors"), 0);
  EXPECT_EQ(report.at("warnings"), 0);
  std::set<std::string> asked;
  for (const auto& check : report.at("checks")) {
    EXPECT_EQ(check.at("answer"), "ok") << check.dump(2);
    asked.insert(check.at("check"));
  }
  for (const auto& check : report.at("workloads").at(0).at("checks")) {
    EXPECT_EQ(check.at("answer"), "ok") << check.dump(2);
    asked.insert(check.at("check"));
  }
  // And each of them is known to find something.
  std::set<std::string> finding{"file.readable"};  // which validate_test.cpp has
  for (const Unfit& unfit : all_unfit) finding.insert(unfit.check);
  EXPECT_EQ(asked, finding);
}

INSTANTIATE_TEST_SUITE_P(All, SoundPlugin, testing::Values(Unfit{"sound", "", ""}),
                         [](const auto& info) { return std::string(info.param.rule); });

}  // namespace
}  // namespace assay::test
